// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/limiter"
)

// delays holds the requests that wait until the tokens of limits that delay are earned: each account's in the order in which
// they came. They hold no tokens meanwhile, so whatever becomes of the numbers, nothing is forwarded that was not taken.
// (What is lent has queues of its own.)
type delays struct {
	mu    sync.Mutex
	lines map[place]*line // guarded by mu, as are the lines
	held  int             // in all lines; guarded by mu
}

// place is an account of a key.
type place struct {
	account *account
	hash    uint64
}

// line is a queue at an account.
type line struct {
	queue []*Held
	cost  uint64
}

// maxDelayed bounds how many requests wait at a time, in all lines together.
const maxDelayed = 1 << 14

// queueing is the account's side: whether anybody waits there.
type queueing struct {
	delays *delays      // nil where the limit does not delay
	held   atomic.Int64 // requests in the account's lines
	ever   atomic.Uint64
}

// behind returns the answer to a request that comes while others wait at the account; ok is false where none does.
func (a *account) behind(now limiter.Time, m *match) (d limiter.Decision, ok bool) {
	q := &a.queueing
	if q.delays == nil || m.first || q.held.Load() == 0 {
		return d, false
	}
	if !m.served {
		q.delays.mu.Lock()
		defer q.delays.mu.Unlock()
	}
	l := q.delays.lines[place{a, m.hash}]
	if l == nil {
		return d, false
	}
	return limiter.Decision{Limit: m.limit.shareBurst, RetryAfter: l.turn(now, m)}, true
}

// turn is how long until a request that comes now would have its turn.
func (l *line) turn(now limiter.Time, m *match) time.Duration {
	ahead := limiter.Tokens(l.cost) * limiter.Token
	own := limiter.Tokens(m.cost) * limiter.Token
	if own > m.limit.shareBurst {
		return limiter.Never
	}
	there := m.limit.account.peek(now, m.hash).Remaining
	if ahead+own <= there {
		return 0
	}
	return m.limit.shareRate.Duration(ahead + own - there)
}

func (a *account) peek(now limiter.Time, hash uint64) limiter.Decision {
	if a.keyed != nil {
		return a.keyed.PeekHashAt(now, hash, 0)
	}
	return a.bucket.PeekAt(now, 0)
}

// join puts a request at the end of the line of a match, unless its turn would come too late: for the request, which may have
// waited elsewhere, or for the limit.
func (q *delays) join(h *Held, m *match, now limiter.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := place{m.limit.account, m.hash}
	l := q.lines[at]
	if l == nil {
		l = &line{}
	}
	if q.held >= maxDelayed || l.turn(now, m) > min(h.until.Sub(now), m.limit.delay) {
		return false
	}
	if q.lines == nil {
		q.lines = map[place]*line{}
	}
	q.lines[at] = l
	l.queue = append(l.queue, h)
	l.cost += m.cost
	q.held++
	m.limit.account.queueing.held.Add(1)
	m.limit.account.queueing.ever.Add(1)
	return true
}

// serve admits those whose turn has come and denies those who have waited for too long. It returns when to be called again.
func (q *delays) serve(e *Engine, now limiter.Time) (next limiter.Time, out []verdict, elsewhere []*Held) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next = now.Add(time.Hour)
	for at, l := range q.lines {
		n := 0
		for ; n < len(l.queue); n++ {
			h := l.queue[n]
			m := at.match(h)
			if !h.Cancel() { // its client has gone, or nobody else decides from here on
				q.leave(at, l, m)
				m.limit.account.undecided.add(m.cost)
				continue
			}
			d, soon, waits := e.again(h, m, now)
			if waits {
				h.over.Store(false)
				next = min(next, soon)
				break
			}
			q.leave(at, l, m)
			if !d.Allowed && !h.lost && now <= h.until && waitsFor(h.matches, &d) != nil {
				h.over.Store(false)
				elsewhere = append(elsewhere, h)
				continue
			}
			out = append(out, verdict{h, d})
		}
		l.queue = slices.Delete(l.queue, 0, n)
		if len(l.queue) == 0 {
			delete(q.lines, at)
		}
	}
	return next, out, elsewhere
}

func (q *delays) leave(at place, l *line, m *match) {
	l.cost -= m.cost
	q.held--
	at.account.queueing.held.Add(-1)
}

// match is the one for which a request waits at the place.
func (at place) match(h *Held) *match {
	for i := range h.matches {
		if m := &h.matches[i]; m.limit.account == at.account && m.hash == at.hash {
			return m
		}
	}
	panic("admission: a request waits where it asks for nothing")
}

// again decides for the first of a line by what is in force now. waits tells that its turn comes later, soon says when.
func (e *Engine) again(h *Held, m *match, now limiter.Time) (d Decision, soon limiter.Time, waits bool) {
	for {
		t := e.table.Load()
		if !h.move(t) {
			return h.left(t, m), 0, false
		}
		h.serving(true)
		m.first = true
		d = decide(h.matches, now)
		m.first = false
		h.serving(false)
		if e.table.Load() == t {
			break
		}
		d.Ticket.End() // the tokens stay taken, as in decideOrHold
	}
	if d.Allowed || now > h.until || !slices.Contains(d.Denied, m.limit) || d.Refusal != 0 {
		return d, 0, false
	}
	wait := (&line{}).turn(now, m)
	if wait == limiter.Never {
		return d, 0, false
	}
	return d, min(now.Add(max(wait, time.Microsecond)), h.until+1), true
}

func (h *Held) serving(now bool) {
	for i := range h.matches {
		h.matches[i].served = now
	}
}
