// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"time"

	"github.com/headgate/headgate/limiter"
)

// busyStep is how often a tab is looked after while requests wait for what its own share earns.
const busyStep = limiter.Time(2 * time.Millisecond)

// Called tells when to call Turn before the time that it returned: something has happened that does not wait.
func (e *Engine) Called() <-chan struct{} { return e.calls }

// Speak tells that Report has something to say.
func (e *Engine) Speak() <-chan struct{} { return e.speak }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Turn looks after the limits whose tokens are lent: it counts what was spent, serves and denies those who wait, and earns
// what this process earns by itself. It returns when to be called again; one goroutine at a time calls it, for as long as
// the engine decides.
func (e *Engine) Turn(now limiter.Time) (next limiter.Time) {
	next = now.Add(time.Minute)
	say := false
	for _, a := range e.adaptives() {
		soon, speaks, verdicts, elsewhere := a.turn(now, e.linked.Load())
		next = min(next, soon)
		say = say || speaks
		e.deliver(verdicts, now)
		e.move(elsewhere, now)
	}
	soon, verdicts, elsewhere := e.delays.serve(e, now)
	next = min(next, soon)
	e.deliver(verdicts, now)
	e.move(elsewhere, now)
	if say {
		signal(e.speak)
	}
	return next
}

// adaptives are the limits in force whose tokens are lent.
func (e *Engine) adaptives() []*adaptive {
	t := e.table.Load()
	if t == nil {
		return nil
	}
	return t.lent
}

func (a *adaptive) turn(now limiter.Time, linked bool) (next limiter.Time, say bool, verdicts []verdict, elsewhere []*Held) {
	a.called.Store(false)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enforce(now)
	next = limiter.Time(math.MaxInt64)
	if at, ok := a.sleeper.Wakes(); ok {
		next = limiter.Time(at) + 1
	}
	if due := limiter.Time(a.sleeper.Next(int64(now))); linked && due <= now {
		next, say = min(next, now+busyStep), true
	} else if linked {
		next = min(next, due)
	}
	var done []*tab
	a.all(func(t *tab) {
		out, moved := t.serve(now, verdicts)
		verdicts, elsewhere = out, append(elsewhere, moved...)
		soon, active := t.holder.Next(int64(now))
		if !linked && len(t.queue) == 0 {
			active = false // there is nobody to tell
		}
		switch {
		case active:
			at := limiter.Time(soon)
			if len(t.queue) > 0 {
				at = min(at, now+busyStep)
			}
			next, say = min(next, max(at, now+1)), say || at-now < limiter.Time(10*time.Millisecond)
			say = say || at <= now
			t.holder.Watch(t.holder.Purse().Left() / 2)
		default:
			t.holder.Watch(math.MaxInt64) // the next request is news
		}
		if a.keys != nil && !active && len(t.queue) == 0 && t.holder.Forgettable(int64(now)) {
			done = append(done, t)
		}
	})
	a.forget(done)
	return next, say && linked, verdicts, elsewhere
}
