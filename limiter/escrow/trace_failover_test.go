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
	st.lead(limit(100, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a"}})
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

// handOver stops the leader and returns its last word on the account.
func (st *stage) handOver() *escrow.Remainder {
	st.fleet.Stop(st.now)
	r, ok := st.mint.Remainder()
	if !ok {
		st.t.Fatal("no last word")
	}
	return &r
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
	rest := st.handOver()
	st.lead(l, escrow.Recovery{Epoch: 2, Existing: []string{"a", "b", "dead"}, Rest: rest, Unshared: true})
	st.welcome(a, 2)
	st.welcome(b, 2)
	if got := st.mint.Pool(st.now); got != rest.Level || got < 4*escrow.Micro {
		t.Errorf("the new leader goes on with %d micro-tokens, the old one ended with %d", got, rest.Level)
	}
}

func TestALeaderThatIsStillLeadingHasNoLastWord(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	if _, ok := st.mint.Remainder(); ok {
		t.Error("what is in the pool can be lent twice: by this leader and by the next")
	}
}

func TestWhatWasLeftIsNotLentBesideWhatPodsStillHold(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	for range 3 {
		st.lend(a, 90)
		if !a.h.Take(90, st.now) {
			t.Fatal("a loan cannot be taken")
		}
		st.pass(50 * ms)
	}
	st.lend(a, 90)
	rest := st.handOver()
	st.lead(limit(1, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a"}, Rest: rest, Unshared: true})
	if got := st.pool(); got > 400-3*90-90+1 {
		t.Errorf("%d tokens can be lent beside 90 that a pod holds and 270 that are spent", got)
	}
}

func TestAnAccountIsRestoredByItsOwnWordAndNotByThatOnTheOthers(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	st.join("a", 1)
	st.fleet.Stop(st.now)
	rest, _ := st.fleet.Rest()
	next := escrow.NewFleet(limit(1, 400), sec, escrow.Recovery{Epoch: 2, Existing: []string{"a"}, Rest: &rest, Unshared: true}, st.now)
	next.Lease(1<<60, st.now)
	spent := next.Restore(escrow.Remainder{Level: 7 * escrow.Micro}, st.now)
	fresh := next.Account(st.now)
	if got := spent.Pool(st.now) / escrow.Micro; got != 7 {
		t.Errorf("an account that had 7 tokens left begins with %d", got)
	}
	if got := fresh.Pool(st.now) / escrow.Micro; got < 299 {
		t.Errorf("an account that nobody had touched begins with %d of 400 tokens", got)
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
	st.lead(limit(1, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a"}})
	st.welcome(a, 2)
	if n := st.pool(); n != 0 {
		t.Errorf("%d tokens are in the pool of a leader that has earned nothing", n)
	}
}

func TestWhatUnregisteredPodsMayHoldIsNotLentByANewLeader(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a", "b"}, Unshared: true})
	st.join("a", 2)
	st.pass(2 * sec)
	if n := st.pool(); n != 400-100 {
		t.Errorf("%d of 400 tokens are in the pool while b may hold 100 in loans", n)
	}
	st.fleet.Absent("b", st.now)
	st.pass(sec)
	if n := st.pool(); n != 400 {
		t.Errorf("%d of 400 tokens are in the pool once b is proven gone", n)
	}
}

func TestANewLeaderDoesNotEarnWhatAPodThatHasNotRegisteredMayBeEarning(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a, _ := st.join("a", 1), st.join("b", 1)
	st.pass(5 * sec)
	st.lead(limit(100, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a", "b"}})
	st.procs = []*proc{a}
	st.welcome(a, 2)
	st.pass(2 * sec)
	if n := st.pool(); n < 95 || n > 100 {
		t.Errorf("the leader earned %d tokens in 2 s of 100 per second, of which b may be earning one half", n)
	}
}
