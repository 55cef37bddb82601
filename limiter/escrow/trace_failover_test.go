// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

func TestALateLoanOfTheOldLeaderIsNotSpentBesideTheNewOnes(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	p := st.join("a", 1)
	st.pass(50 * ms)
	p.deaf = true
	p.h.Queue(50, 50)
	st.pass(50 * ms)
	p.h.Queue(0, 0)
	late := st.loans["a"]
	if late.Granted != 50 {
		t.Fatalf("the old leader lent %d", late.Granted)
	}
	st.lead(limit(100, 400), escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a"}})
	p.deaf = false
	st.welcome(p, 2)
	p.h.Loan(late)
	if n := p.h.Available(st.now); n != 0 {
		t.Errorf("%d tokens of the old leader are spendable, and the new one does not know", n)
	}
}

func TestALeaderWhoseLeaseHasPassedLendsAndEarnsNothing(t *testing.T) {
	st := &stage{t: t, loans: map[string]escrow.Loan{}}
	st.fleet = escrow.NewFleet(limit(100, 400), sec, escrow.Recovery{Epoch: 1}, 0)
	st.fleet.Lease(600*ms, 0)
	st.mint = st.fleet.Account(0)
	p := st.join("a", 1)
	st.pass(500 * ms)
	earned := st.mint.Pool(600 * ms)
	p.h.Queue(10, 10)
	c, ok := p.h.Claim(st.now + ms)
	if !ok {
		t.Fatal("a held request asks for nothing")
	}
	st.mint.Claim("a", c, st.now+ms)
	st.now = 600 * ms
	st.mint.Lend(st.now, func(string, escrow.Loan) { t.Error("lent after the lease had passed") })
	if late := st.mint.Pool(900 * ms); late != earned {
		t.Errorf("earned %d micro-tokens after the lease had passed", late-earned)
	}
}

func TestALeaderThatHasHandedOverIsNotRevivedByARenewedLease(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	p := st.join("a", 1)
	st.pass(50 * ms)
	p.h.Queue(10, 10)
	c, _ := p.h.Claim(st.now + ms)
	st.fleet.Stop(st.now)
	st.fleet.Lease(st.now+10*sec, st.now)
	st.mint.Claim("a", c, st.now+ms)
	st.mint.Lend(st.now+ms, func(string, escrow.Loan) { t.Error("lent after the last word") })
	if before, after := st.mint.Pool(st.now), st.mint.Pool(st.now+sec); after != before {
		t.Error("earned after the last word")
	}
}

// handOver stops the leader and gives its last word to the processes.
func (st *stage) handOver() escrow.Handover {
	st.fleet.Stop(st.now)
	w, ok := st.mint.Handover()
	if !ok {
		st.t.Fatal("no last word")
	}
	for _, p := range st.procs {
		p.h.Handover(w)
	}
	return w
}

func TestAPlannedRestartLosesNothingOfALongWindow(t *testing.T) {
	l := escrow.Limit{Requests: 5, Period: uint64(3600 * sec), Burst: 5}
	st := newStage(t, l, escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.lend(a, 1)
	if !a.h.Take(1, st.now) {
		t.Fatal("a token that was lent cannot be taken")
	}
	st.pass(100 * ms)
	w := st.handOver()
	st.lead(l, escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a", "b", "dead"}})
	st.welcome(a, 2)
	st.welcome(b, 2)
	if got := st.mint.Pool(st.now); got != w.Level || got < 4*escrow.Micro {
		t.Errorf("the new leader goes on with %d micro-tokens, the old one ended with %d", got, w.Level)
	}
}

func TestALastWordThatComesLateDoesNotFillThePoolASecondTime(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.pass(2 * sec)
	st.handOver()
	st.lead(limit(100, 400), escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a", "b"}})
	b.h = b.s.Account(st.now) // b has not heard the last word, a has, and is cut off
	st.procs = []*proc{b}
	st.welcome(b, 2)
	st.pass(6 * sec)
	full := st.pool()
	for range 10 {
		st.lend(b, 20)
		if !b.h.Take(20, st.now) {
			t.Fatal("a loan cannot be taken")
		}
		st.pass(50 * ms)
	}
	spent := st.pool()
	st.procs = append(st.procs, a)
	st.welcome(a, 2)
	if got := st.pool(); got > spent+100 {
		t.Errorf("a pool that was full (%d) and then lent out (%d) rose to %d by what an earlier leader had left", full, spent, got)
	}
}

func TestTheLastWordOfALeaderBeforeThePreviousOneIsRefused(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.pass(10 * ms)
	st.handOver()
	st.lead(limit(1, 400), escrow.Recovery{Epoch: 3, Previous: 2, Existing: []string{"a"}})
	st.welcome(a, 3)
	if n := st.pool(); n != 0 {
		t.Errorf("%d tokens that a leader in between may have lent are lent again", n)
	}
}

func TestACrashedLeadersPoolIsNotRestoredFromWhatAPodHappensToHaveSeen(t *testing.T) {
	// b borrows and spends all after a's last loan, reports it, dies and is proven gone. The leader crashes: nobody is
	// left who has seen how low the pool was.
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.lend(a, 1)
	for range 4 {
		st.lend(b, 70)
		b.h.Take(70, st.now)
		st.pass(50 * ms)
	}
	st.procs = st.procs[:1]
	st.fleet.Gone("b", st.now)
	st.lead(limit(1, 400), escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a"}})
	st.welcome(a, 2)
	if n := st.pool(); n != 0 {
		t.Errorf("%d tokens are in the pool of a leader that has earned nothing", n)
	}
}

func TestWhatUnregisteredPodsMayHoldIsNotLentByANewLeader(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a", "b"}, Unshared: true})
	st.join("a", 2)
	st.pass(2 * sec)
	if n := st.pool(); n != 400-100-100 {
		t.Errorf("%d of 400 tokens can be lent while b may hold 100 in loans, and shares 100", n)
	}
	st.fleet.Gone("b", st.now)
	st.pass(sec)
	if n := st.pool(); n != 300 {
		t.Errorf("%d of 400 tokens can be lent once b is proven gone", n)
	}
}

func TestANewLeaderDoesNotEarnWhatAPodThatHasNotRegisteredMayBeEarning(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a, _ := st.join("a", 1), st.join("b", 1)
	st.pass(5 * sec)
	st.lead(limit(100, 400), escrow.Recovery{Epoch: 2, Previous: 1, Existing: []string{"a", "b"}})
	st.procs = []*proc{a}
	st.welcome(a, 2)
	st.pass(2 * sec)
	if n := st.pool(); n < 95 || n > 100 {
		t.Errorf("the leader earned %d tokens in 2 s of 100 per second, of which b may be earning one half", n)
	}
}
