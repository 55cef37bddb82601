// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// stage is one limit with one account: a leader, and processes that its messages reach at once or never.
type stage struct {
	t     *testing.T
	fleet *escrow.Fleet
	mint  *escrow.Mint
	procs []*proc
	now   int64
	loans map[string]escrow.Loan // newest, delivered or not
	stand bool                   // tokens stand by: most traces are told without
}

type proc struct {
	id   string
	s    *escrow.Sleeper
	h    *escrow.Holder
	deaf bool
	mute bool
	skew func(int64) int64 // its clock
}

func limit(rate uint64, burst int64) escrow.Limit {
	return escrow.Limit{Requests: rate, Period: uint64(sec), Burst: burst}
}

func newStage(t *testing.T, l escrow.Limit, r escrow.Recovery) *stage {
	t.Helper()
	st := &stage{t: t, loans: map[string]escrow.Loan{}}
	st.lead(l, r)
	return st
}

// lead makes a new leader of the stage; no process follows it yet.
func (st *stage) lead(l escrow.Limit, r escrow.Recovery) {
	st.fleet = escrow.NewFleet(l, sec, r, st.now)
	st.fleet.Lease(1<<60, st.now)
	st.mint = st.fleet.Account(st.now)
}

func (st *stage) join(id string, epoch uint64) *proc {
	p := &proc{id: id, s: escrow.NewSleeper(sec, st.now), skew: func(t int64) int64 { return t }}
	p.h = p.s.Account(st.now)
	st.procs = append(st.procs, p)
	st.welcome(p, epoch)
	return p
}

func (st *stage) welcome(p *proc, epoch uint64) {
	at := p.skew(st.now)
	if !p.s.Welcome(escrow.Welcome{Epoch: epoch, Sent: st.now}, at) {
		st.t.Fatalf("%s refuses epoch %d", p.id, epoch)
	}
	st.fleet.Hello(p.id, p.id, p.s.Hello(at), st.now)
	st.mint.Claim(p.id, p.h.Registration(at), st.now)
}

// pass lets time pass in steps of a millisecond, with everything that is due said and heard.
func (st *stage) pass(dt int64) {
	for until := st.now + dt; st.now < until; {
		st.now += ms
		st.talk()
	}
}

func (st *stage) talk() {
	for _, p := range st.procs {
		if b, ok := p.s.Beat(p.skew(st.now)); ok && !p.mute {
			st.fleet.Beat(p.id, b, st.now)
		}
		if c, ok := p.h.Claim(p.skew(st.now)); ok && !p.mute {
			st.mint.Claim(p.id, c, st.now)
		}
	}
	st.fleet.Flush(st.now, func(id string, o escrow.Order) {
		if !st.stand {
			o.Stand = 0
		}
		if p := st.proc(id); p != nil && !p.deaf {
			p.s.Order(o, p.skew(st.now))
		}
	})
	st.mint.Lend(st.now, func(id string, l escrow.Loan) {
		st.loans[id] = l
		if p := st.proc(id); p != nil && !p.deaf {
			p.h.Loan(l)
		}
	})
}

func (st *stage) proc(id string) *proc {
	for _, p := range st.procs {
		if p.id == id {
			return p
		}
	}
	return nil
}

// lend makes a claim for n tokens, as a process whose requests are held would.
func (st *stage) lend(p *proc, n int64) {
	st.t.Helper()
	p.h.Queue(n, n)
	st.pass(20 * ms)
	p.h.Queue(0, 0)
	if got := p.h.Available(p.skew(st.now)); got < n {
		st.t.Fatalf("%s asked for %d tokens and has %d", p.id, n, got)
	}
}

func (st *stage) pool() int64 { return st.mint.Pool(st.now) / escrow.Micro }
