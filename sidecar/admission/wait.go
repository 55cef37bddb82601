// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/limiter/escrow"
)

const (
	// DefaultHold is how long a request may wait for tokens that are on their way, where its policy does not say: as long as
	// a pod goes on relying on a leader that has not answered. A leader that answers, as it does within milliseconds, ends
	// the wait; only on machines without a free processor is it ever felt, and there a denial would be wrong.
	DefaultHold = time.Duration(sleep) / 2
	// maxHold is the longest that a policy may say.
	maxHold = time.Second
	// scarce is how long it waits at most where none is left: what is earned is lent each few milliseconds.
	scarce = 10 * time.Millisecond
	// lately is for how long it counts that the leader has said so.
	lately = 400 * time.Millisecond
)

// verdict is a decision on its way to who waits for it.
type verdict struct {
	held     *Held
	decision Decision
}

// deliver counts what was decided and tells those who wait. No lock is held.
func (e *Engine) deliver(verdicts []verdict, now limiter.Time) {
	for _, v := range verdicts {
		v.decision.Response = v.held.table.snapshot.GetResponse()
		e.conclude(v.held.matches, v.held.hashes, &v.decision, now)
		v.held.then(v.decision)
	}
}

// conclude counts and records a decision.
func (e *Engine) conclude(matches []match, hashes []KeyHash, d *Decision, now limiter.Time) {
	count(matches, d)
	if e.options.Recorder != nil {
		e.record(matches, hashes, d, now)
	}
}

// wait lets a request wait for the limit whose tokens it lacks, if they may come in time. No lock is held.
func (e *Engine) wait(h *Held, m *match, now limiter.Time) bool {
	a := m.limit.account.lent
	if a == nil {
		if !e.delays.join(h, m, now) {
			return false
		}
		signal(e.calls)
		return true
	}
	a.mu.Lock()
	t := a.find(m.hash)
	ok := t != nil && a.table() == h.table && t.line(h, now)
	if ok {
		a.held.Add(1)
	}
	a.mu.Unlock()
	if ok {
		a.nudge()
		signal(e.speak)
	}
	return ok
}

// move lets requests wait where they lack tokens now. No lock is held.
func (e *Engine) move(elsewhere []*Held, now limiter.Time) {
	for _, h := range elsewhere {
		d := e.anew(h, now)
		m := waitsFor(h.matches, &d)
		if d.Allowed || h.lost || m == nil || !e.wait(h, m, now) {
			if h.Cancel() {
				e.deliver([]verdict{{h, d}}, now)
			}
		}
	}
}

// anew decides for a request that waits nowhere by what is in force now.
func (e *Engine) anew(h *Held, now limiter.Time) Decision {
	for {
		t := e.table.Load()
		if !h.move(t) {
			return h.left(t, &h.matches[0])
		}
		d := decide(h.matches, now)
		if e.table.Load() == t {
			return d
		}
		d.Ticket.End() // the tokens stay taken, as in decideOrHold
	}
}

// seek looks for the tokens that a request lacks beside the purses, and asks for them. It reports whether there are any now.
func (e *Engine) seek(matches []match, lack []*Limit, requests []*Request, now limiter.Time) (found bool) {
	found = true
	for i := range matches {
		m := &matches[i]
		if m.limit.account.lent != nil && slices.Contains(lack, m.limit) {
			found = m.limit.account.lent.seek(m, requests, now) && found
		}
	}
	return found
}

func (a *adaptive) seek(m *match, requests []*Request, now limiter.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.find(m.hash)
	if t == nil && !a.alone(now) {
		t = a.open(m.hash, m.name(requests), now)
	}
	if t == nil {
		return false
	}
	if !t.waiting.Load() {
		t.holder.Stock(int64(now))
		a.stamp.Store(max(a.stamp.Load(), int64(now)))
		if t.holder.Purse().Left() >= int64(m.cost) {
			return true
		}
	}
	t.holder.Arrive(int64(m.cost), int64(now))
	return false
}

// on returns the match for which a request waits at a tab.
func (t *tab) on(h *Held) *match {
	for i := range h.matches {
		if m := &h.matches[i]; m.limit.account.lent == t.of && (t.of.one != nil || m.hash == t.hash) {
			return m
		}
	}
	panic("admission: a request waits where it asks for nothing")
}

// line puts a request at the end of the queue, unless more is queued already than can come in time. The lock is held.
func (t *tab) line(h *Held, now limiter.Time) bool {
	m := t.on(h)
	if !t.mayCome(int64(m.cost), now) {
		return false
	}
	t.queue = append(t.queue, h)
	t.cost += int64(m.cost)
	t.show()
	return true
}

// mayCome reports whether a cost that is queued now may be met before a request has waited for too long. The lock is held.
func (t *tab) mayCome(cost int64, now limiter.Time) bool {
	a := t.of
	l := a.sleeper.Limit()
	if a.hold <= 0 || !a.sleeper.Ordered() || cost > l.Outstanding() {
		return false
	}
	rate, err := limiter.NewRate(l.Requests, time.Duration(l.Period))
	if err != nil {
		return false
	}
	short := t.cost + cost - t.holder.Available(int64(now))
	if a.alone(now) {
		parts, burst := a.sleeper.Share(int64(now))
		if a.keys != nil || cost*int64(limiter.Token) > burst {
			return false // nobody lends, and what the share earns is not earned here
		}
		rate = rate.Part(parts, escrow.Whole*1000)
	} else {
		short -= l.Burst // the pool may be full
	}
	return short <= 0 || rate.Duration(limiter.Tokens(short)*limiter.Token) <= a.hold
}

// show tells the holder what waits. The lock is held.
func (t *tab) show() {
	first := int64(0)
	if len(t.queue) > 0 {
		first = int64(t.on(t.queue[0]).cost)
	}
	t.holder.Queue(t.cost, first)
	t.waiting.Store(len(t.queue) > 0)
}

// serve lays out what is at hand and admits those who wait, in the order in which they came, as far as it goes. It denies
// those who have waited for too long, and those that other limits deny; who lacks tokens of another limit that lends is
// returned, to wait there. The lock is held.
func (t *tab) serve(now limiter.Time, out []verdict) (verdicts []verdict, elsewhere []*Held) {
	t.holder.Stock(int64(now))
	t.of.stamp.Store(max(t.of.stamp.Load(), int64(now)))
	if len(t.queue) == 0 {
		return out, nil
	}
	n := 0
	for ; n < len(t.queue); n++ {
		h := t.queue[n]
		m := t.on(h)
		if !h.Cancel() { // nobody else decides from here on
			t.cost -= int64(m.cost)
			m.limit.account.undecided.add(m.cost)
			continue
		}
		if in := t.of.table(); !h.move(in) {
			t.cost -= int64(m.cost)
			out = append(out, verdict{h, h.left(in, m)})
			continue
		}
		late := now > h.until || now > h.soon && t.dry(now)
		m.first = true
		d := decide(h.matches, now)
		m.first = false
		if !d.Allowed && !late {
			if slices.Contains(d.Denied, m.limit) {
				h.over.Store(false)
				break
			}
			if waitsFor(h.matches, &d) != nil {
				h.over.Store(false)
				t.cost -= int64(m.cost)
				elsewhere = append(elsewhere, h)
				continue
			}
		}
		t.cost -= int64(m.cost)
		out = append(out, verdict{h, d})
	}
	t.queue = slices.Delete(t.queue, 0, n)
	t.show()
	return out, elsewhere
}

// dry reports whether nothing is on its way but what is earned: the leader has lately said that none is left, or nobody lends.
// The lock is held.
func (t *tab) dry(now limiter.Time) bool {
	return t.of.alone(now) || t.scarce != 0 && now-t.scarce < limiter.Time(lately)
}

// mayWait reports whether a request may wait for the limit's tokens: those that are lent, or those that it delays for.
func (l *Limit) mayWait() bool { return l.account.lent != nil || l.account.queueing.delays != nil }

// waitsFor returns the match for whose limit's tokens the request may wait, where such limits are all that denied it.
func waitsFor(matches []match, d *Decision) *match {
	if d.Refusal != 0 {
		return nil
	}
	var first *match
	for i := range matches {
		m := &matches[i]
		if !slices.Contains(d.Denied, m.limit) {
			continue
		}
		if !m.limit.mayWait() {
			return nil
		}
		if first == nil {
			first = m
		}
	}
	return first
}
