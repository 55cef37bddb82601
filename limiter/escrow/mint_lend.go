// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"math/bits"
	"time"
)

const (
	// tick is how often scarce tokens are lent. With the way there and back it has to stay below B/(4R), or the pool
	// overflows while processes wait.
	tick = 5 * int64(time.Millisecond)
	// crumbs is how often scarce tokens are lent while shares are earned in place: it is little that is left over.
	crumbs = 4 * tick
	// serving is how long a process waits for its next loan when all want more than there is.
	serving = 40 * int64(time.Millisecond)
	// resend is how long a loan may stay unheard of before it is sent again.
	resend = 20 * int64(time.Millisecond)
	// answer is how long a process that is short may hear nothing before it is told that there is none.
	answer = 100 * int64(time.Millisecond)
)

// Lend calls emit with every loan that is due. Call it after each claim, and when Next has passed.
//
// What is there for everybody is lent at once. What is scarce is lent at ticks: first, in turns, to each the least that
// is of use to it, and then to all up to one water level.
func (m *Mint) Lend(now int64, emit func(id string, l Loan)) {
	if !m.f.Leading(now) {
		return
	}
	m.f.advance(now)
	m.sync()
	m.scarce = m.lendable() == 0 && m.standing == 0
	for _, b := range m.lost {
		m.tell(b, emit) // the total, so nothing is lent twice
	}
	m.lost = m.lost[:0]
	m.serve(m.lendable(), emit)
	switch {
	case m.short > 0:
		m.recall(emit)
		m.refuse(emit)
	case m.idle > 0:
		m.standBy(emit)
	}
}

// serve lends to those behind whose wants there are requests.
func (m *Mint) serve(avail int64, emit func(id string, l Loan)) {
	if m.short == 0 || avail == 0 || m.sum > avail && m.f.now < m.ready {
		return
	}
	m.ready = m.f.now + tick
	if m.f.stay && m.pool < m.f.limit.shares() {
		m.ready = m.f.now + crumbs
	}
	for _, b := range m.order {
		m.weigh(b)
	}
	if m.short == 0 {
		return
	}
	m.level(m.turns(avail, m.share(m.short)))
	for _, g := range m.wants {
		avail -= g
	}
	m.scarce = avail == 0 && m.standing == 0
	for i, b := range m.order {
		if g := m.wants[i]; g > 0 {
			m.grant(b, g, emit)
		}
	}
}

// standBy lends to those that nobody asks at present, while at least half of the burst is there.
func (m *Mint) standBy(emit func(id string, l Loan)) {
	for _, b := range m.order {
		if m.pool < m.f.limit.Burst*Micro/2 {
			return
		}
		if m.weigh(b); b.spare > 0 {
			if g := min(b.spare, m.lendable()); g >= b.least {
				m.grant(b, g, emit)
			}
		}
	}
}

// refuse tells those that are short, and have heard nothing for long, that there is none: they need not hold requests for
// it. Where something may come back soon they are told nothing.
func (m *Mint) refuse(emit func(id string, l Loan)) {
	if m.standing > 0 {
		return
	}
	for _, b := range m.asked {
		if b.open > 0 && b.least > m.lendable() && m.f.now-b.told >= answer {
			m.scarce = true
			m.tell(b, emit)
		}
	}
	m.asked = m.asked[:0]
}

// recall calls back what stands by, since others are short.
func (m *Mint) recall(emit func(id string, l Loan)) {
	if m.standing == 0 || m.f.now < m.recalled+resend {
		return
	}
	m.recalled = m.f.now
	for _, b := range m.order {
		if b.standing > 0 {
			emit(b.pod.id, Loan{Epoch: m.f.recovery.Epoch, Born: b.born, Granted: b.granted, Recall: true})
		}
	}
}

// Next returns when Lend should be called if nothing else happens: when scarce tokens will be lent again and there is a
// whole one. Where only a claim can make room for a loan, it is that which is waited for.
func (m *Mint) Next() (int64, bool) {
	if m.short == 0 || m.free() < Micro {
		return 0, false
	}
	whole := m.f.now + 1
	if m.pool < Micro {
		l := m.f.limit
		ns := mulDivUp(uint64(Micro-m.pool), l.Period, l.Requests*Micro)
		whole = m.f.now + int64(min(mulDivUp(ns, wholeParts, m.f.parts), forever)) + 1
	}
	return max(m.ready, whole), true
}

// weigh counts anew what a borrower may be lent and wants.
func (m *Mint) weigh(b *borrower) {
	m.sum -= b.open
	m.short -= sign(b.open)
	m.idle -= sign(b.spare)
	m.standing -= b.standing
	b.open, b.spare, b.standing = m.wanted(b), 0, 0
	if b.idle {
		b.open, b.spare, b.standing = 0, b.open, b.outstanding()
	}
	m.sum += b.open
	m.short += sign(b.open)
	m.idle += sign(b.spare)
	m.standing += b.standing
}

func sign(n int64) int { return int(min(n, 1)) }

// wanted is what a process may be lent and wants: never so much that it has more than its bound. A want that has not
// been repeated for D is forgotten, and so is one that the pool can never meet.
func (m *Mint) wanted(b *borrower) int64 {
	l := m.f.limit
	w := min(b.want-b.granted, l.Outstanding()-b.outstanding())
	if w < b.least || m.f.now >= b.until || b.least*Micro > m.free()+m.lent*Micro {
		return 0
	}
	return w
}

// share is what one of the short is lent in its turn: what the limit's rate earns in a round, divided.
func (m *Mint) share(short int) int64 {
	var a accrual
	return a.add(m.f.limit, serving, wholeParts) / Micro / int64(short)
}

// turns lends in turns, as far as avail reaches, and leaves in wants what each gets; it returns what is left. A process
// whose least does not fit is the first to be served next time, and nobody overtakes it.
func (m *Mint) turns(avail, share int64) int64 {
	m.wants = m.wants[:0]
	for range m.order {
		m.wants = append(m.wants, 0)
	}
	n := len(m.order)
	m.cursor %= n
	for range n {
		b := m.order[m.cursor]
		if w := b.open; w > 0 {
			g := min(w, max(b.least, share, 1))
			if g > avail {
				if b.least > avail {
					return 0
				}
				g = avail
			}
			m.wants[m.cursor] = g
			avail -= g
		}
		m.cursor = (m.cursor + 1) % n
	}
	return avail
}

// level lends what is left up to one water level of what is still wanted.
func (m *Mint) level(avail int64) {
	if avail <= 0 {
		return
	}
	for i, b := range m.order {
		if w := b.open; w > 0 {
			m.wants[i] = w - m.wants[i]
		}
	}
	level := Level(m.wants, avail)
	for i, b := range m.order {
		if w := b.open; w > 0 {
			first := w - m.wants[i]
			m.wants[i] = first + min(m.wants[i], level)
		}
	}
}

func (m *Mint) grant(b *borrower, tokens int64, emit func(id string, l Loan)) {
	b.granted += tokens
	m.lent += tokens
	m.pool -= tokens * Micro
	m.weigh(b)
	m.tell(b, emit)
}

func (m *Mint) tell(b *borrower, emit func(id string, l Loan)) {
	b.told = m.f.now
	emit(b.pod.id, Loan{Epoch: m.f.recovery.Epoch, Born: b.born, Granted: b.granted, Scarce: m.scarce})
}

// mulDivUp returns a*b/c, rounded up, or a time that does not come.
func mulDivUp(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return forever
	}
	q, r := bits.Div64(hi, lo, c)
	if r > 0 {
		q++
	}
	return q
}
