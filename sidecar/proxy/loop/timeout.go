// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Timeouts are timers of one length, so that the first that was started is the first to expire: starting and stopping
// one is a change of two pointers.
type Timeouts struct {
	loop        *Loop
	length      time.Duration
	first, last *Timer
}

// Expirer is told when a timer of a kind has expired.
type Expirer interface {
	Expired(kind *Timeouts)
}

// Timer is one entry of a Timeouts, or of none. The zero value belongs to none.
type Timer struct {
	kind       *Timeouts
	owner      Expirer
	at         time.Duration
	next, prev *Timer
}

// NewTimeouts returns timers of a length. A length of 0 or less never expires.
func (l *Loop) NewTimeouts(length time.Duration) *Timeouts {
	t := &Timeouts{loop: l, length: length}
	l.timeouts = append(l.timeouts, t)
	return t
}

// Start starts a timer, anew if it runs.
func (k *Timeouts) Start(t *Timer, owner Expirer) {
	t.Stop()
	if k.length <= 0 {
		return
	}
	t.kind, t.owner, t.at = k, owner, k.loop.now+k.length
	t.prev = k.last
	if k.last == nil {
		k.first = t
	} else {
		k.last.next = t
	}
	k.last = t
}

// Stop stops a timer, if it runs.
func (t *Timer) Stop() {
	k := t.kind
	if k == nil {
		return
	}
	if t.prev == nil {
		k.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		k.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	*t = Timer{}
}

// Runs reports whether the timer runs in this kind.
func (k *Timeouts) Runs(t *Timer) bool { return t.kind == k }

// nextTimeout is how long the loop may wait: negative when for ever.
func (l *Loop) nextTimeout() time.Duration {
	next := time.Duration(-1)
	for _, k := range l.timeouts {
		if k.first == nil {
			continue
		}
		if left := max(0, k.first.at-l.now); next < 0 || left < next {
			next = left
		}
	}
	return next
}

func (l *Loop) expire() {
	for _, k := range l.timeouts {
		for k.first != nil && k.first.at <= l.now {
			t := k.first
			owner := t.owner
			t.Stop()
			owner.Expired(k)
		}
	}
}
