// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "slices"

// Mint is the leader's ledger of one account: a pool that earns what no pod can be earning itself, out of which whole
// tokens are lent to the pods that ask. Loans are counted, not timed: what is lent was earned, and is spent once.
//
// It belongs to the Fleet that made it and shares its clock, its lease and its owner.
type Mint struct {
	f    *Fleet
	pool int64  // micro-tokens, never above room
	seen uint64 // Fleet.earned that is in the pool

	lent      int64 // granted and neither reported as spent nor returned, in tokens
	borrowers map[*pod]*borrower
	order     []*borrower
	cursor    int
	ready     int64 // when scarce tokens may be lent again, on the fleet's clock
	wants     []int64
	short     int   // how many borrowers may be lent something that they want,
	sum       int64 // and how much that is together, in tokens
	lost      []*borrower
	asked     []*borrower // who wants more, and has heard nothing for long
	idle      int         // how many borrowers would have something to stand by
	standing  int64       // what such have borrowed, in tokens
	scarce    bool        // none is left beside what is being lent, and none stands by
	recalled  int64       // when it was called back last, on the fleet's clock

	registered int64 // what existing processes said they held when they registered, in tokens
	resumed    bool  // it goes on with what its predecessor left
	bound      int64 // of what existing processes hold, in tokens, if resumed
}

// borrower is what one process has to do with one account, in tokens, counted from the start of the process.
type borrower struct {
	pod                      *pod
	born                     int64
	granted, spent, returned int64
	want, least              int64
	sent                     int64 // newest Claim.Sent
	heard                    int64 // newest Claim.Granted
	told                     int64 // when the newest loan was sent, on the fleet's clock
	until                    int64 // when want is forgotten, on the fleet's clock
	open                     int64 // its part of Mint.sum
	idle                     bool  // no request is behind what it has and wants
	spare                    int64 // what it would have to stand by, in tokens
	standing                 int64 // its part of Mint.standing
}

func (b *borrower) outstanding() int64 { return b.granted - b.spent - b.returned }

func newMint(f *Fleet) *Mint {
	return &Mint{f: f, seen: f.earned, borrowers: map[*pod]*borrower{}}
}

// room is the most that the pool may hold beside what is lent and what the shares may hold now, in micro-tokens.
func (m *Mint) room() int64 {
	return m.f.limit.Burst*Micro - (m.lent+m.unheard())*Micro - m.f.held
}

// free is the most that may be lent beside what is lent already, and what the shares could ever hold, in micro-tokens: less
// than nothing while more is lent than new numbers allow. A pool gives way to a share that wakes, and a loan cannot.
func (m *Mint) free() int64 {
	r := m.f.limit.Burst*Micro - (m.lent+m.unheard())*Micro
	if m.f.shared {
		r -= m.f.limit.shares()
	}
	return r
}

// lendable is how many whole tokens could be lent now.
func (m *Mint) lendable() int64 { return max(0, min(m.pool, m.free())) / Micro }

// unheard is the most that processes which have not registered hold in loans of this account, in tokens.
func (m *Mint) unheard() int64 {
	n := int64(m.f.Unregistered())
	if n == 0 {
		return 0
	}
	most := m.f.recovery.Ceiling
	if c := m.f.recovery.CeilingOutstanding; n < most/c {
		most = n * c
	}
	if m.resumed {
		most = min(most, max(0, m.bound-m.registered))
	}
	return most
}

// sync moves what has been earned into the pool and takes out what has no room.
func (m *Mint) sync() {
	m.pool += int64(min(m.f.earned-m.seen, uint64(m.f.limit.Burst)*Micro))
	m.seen = m.f.earned
	m.clamp()
}

func (m *Mint) clamp() { m.pool = min(m.pool, max(m.room(), 0)) }

// Claim takes in what a process says about this account. Only a registered process is heard, and only where its sums can
// be: nobody has spent and returned more than was granted.
func (m *Mint) Claim(id string, c Claim, now int64) {
	p := m.f.pods[id]
	if p == nil || c.Epoch != m.f.recovery.Epoch || !m.f.Leading(now) || !c.possible() {
		return
	}
	m.f.advance(now)
	m.sync()
	b := m.borrowers[p]
	if b == nil {
		if c.Sent <= p.forgotten {
			return
		}
		b = &borrower{pod: p, born: c.Born, granted: c.Granted, spent: c.Spent, returned: c.Returned, heard: c.Granted}
		m.borrowers[p] = b
		m.order = append(m.order, b)
		m.lent += b.outstanding()
		m.registered += b.outstanding()
	}
	if c.Born < b.born {
		return
	}
	m.count(b, c)
	m.clamp()
	if c.Sent > b.sent {
		b.sent, b.want, b.least, b.idle = c.Sent, c.Want, max(c.Least, 1), c.Idle
		b.until = m.f.now + 2*m.f.sleep
		b.heard = max(b.heard, c.Granted)
		if b.heard < b.granted && m.f.now-b.told >= resend {
			m.lost = append(m.lost, b)
		}
		if b.want > b.granted && m.f.now-b.told >= answer && !slices.Contains(m.asked, b) {
			m.asked = append(m.asked, b)
		}
	}
	m.weigh(b)
}

// count takes in a claim's counters. They never decrease, so an old or repeated claim changes nothing. What a process
// knows to have been granted and this mint does not is from an earlier life of this account: it starts anew, uncredited.
// So does a process that has begun the account anew: it refuses what was lent before.
func (m *Mint) count(b *borrower, c Claim) {
	m.lent -= b.outstanding()
	switch {
	case c.Born > b.born:
		b.born, b.granted, b.spent, b.returned, b.heard = c.Born, c.Granted, c.Spent, c.Returned, c.Granted
	case c.Granted > b.granted:
		b.granted, b.spent, b.returned = c.Granted, max(b.spent, c.Spent), max(b.returned, c.Returned)
	default:
		b.spent = max(b.spent, c.Spent)
		if c.Returned > b.returned {
			m.pool += (c.Returned - b.returned) * Micro
			b.returned = c.Returned
		}
	}
	m.lent += b.outstanding()
}

// gone takes out a process that has ended: what it had not reported is spent.
func (m *Mint) gone(p *pod) {
	b := m.borrowers[p]
	if b == nil {
		return
	}
	m.sync()
	m.lent -= b.outstanding()
	b.want, b.idle = 0, false
	m.weigh(b)
	m.lost = slices.DeleteFunc(m.lost, func(x *borrower) bool { return x == b })
	m.asked = slices.DeleteFunc(m.asked, func(x *borrower) bool { return x == b })
	delete(m.borrowers, p)
	for i, x := range m.order {
		if x == b {
			m.order = slices.Delete(m.order, i, i+1)
			if m.cursor > i {
				m.cursor--
			}
			break
		}
	}
}

// Pool returns what could be lent now, in micro-tokens.
func (m *Mint) Pool(now int64) int64 {
	m.f.advance(now)
	m.sync()
	return m.pool
}

// Lent returns what is lent and not reported as spent or returned, in tokens.
func (m *Mint) Lent() int64 { return m.lent }

// Forgettable reports whether the account is as if it had never been there: nothing is lent, nobody wants, and a new
// account would have no more. Then, and only then, the owner may Forget it.
func (m *Mint) Forgettable(now int64) bool {
	m.f.advance(now)
	m.sync()
	first := m.f.mints[0]
	first.sync()
	for _, b := range m.order {
		if b.want > b.granted {
			return false
		}
	}
	return m.lent == 0 && m.f.Unregistered() == 0 && m.pool >= first.pool
}

// Forget takes the account out of the fleet. Claims that were made before are not heard by a later life of the account:
// what they say has been counted.
func (m *Mint) Forget() {
	for _, b := range m.order {
		b.pod.forgotten = max(b.pod.forgotten, b.sent)
	}
	for i, x := range m.f.mints {
		if x == m && i > 0 {
			m.f.mints = slices.Delete(m.f.mints, i, i+1)
			return
		}
	}
}
