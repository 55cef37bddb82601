// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

func TestARepeatedReturnCreditsThePoolOnce(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	before := st.pool()
	c := a.h.Final(st.now)
	for range 3 {
		st.mint.Claim("a", c, st.now)
	}
	if got := st.pool(); got != before+50 {
		t.Errorf("50 tokens came back, and the pool rose from %d to %d", before, got)
	}
	if st.mint.Lent() != 0 {
		t.Errorf("%d tokens are still lent", st.mint.Lent())
	}
}

func TestClaimsThatOvertakeOneAnotherChangeNothing(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	early := a.h.Registration(st.now)
	st.lend(a, 50)
	a.h.Take(20, st.now)
	st.mint.Claim("a", a.h.Final(st.now), st.now)
	pool, lent := st.pool(), st.mint.Lent()
	st.mint.Claim("a", early, st.now)
	if st.pool() != pool || st.mint.Lent() != lent {
		t.Errorf("an old claim moved the pool from %d to %d and what is lent from %d to %d", pool, st.pool(), lent, st.mint.Lent())
	}
}

func TestALoanCountsFromWhenItIsSentAndNotFromWhenItIsHeardOf(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.pass(2 * sec)
	a.deaf = true
	a.h.Queue(60, 60)
	st.pass(500 * ms) // claims go on, and none has heard of the loan
	if st.mint.Lent() != 60 {
		t.Errorf("%d tokens count as lent, while 60 are on their way", st.mint.Lent())
	}
	if n := st.pool(); n > 400-60 {
		t.Errorf("%d tokens are in the pool beside 60 on their way", n)
	}
}

func TestAnAccountIsNotForgottenWhileItIsLent(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	st.pass(sec)
	st.lend(a, 50)
	a.mute = true
	st.now += sec
	if st.mint.Forgettable(st.now) {
		t.Error("the account could be forgotten, and begun anew with a full pool, while 50 tokens are lent")
	}
	a.mute = false
	st.mint.Claim("a", a.h.Final(st.now), st.now)
	if !st.mint.Forgettable(st.now) {
		t.Error("an account that is full and from which nothing is lent is kept for ever")
	}
}

func TestAReturnFromBeforeTheAccountWasForgottenIsNotCreditedAgain(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.pass(2 * sec)
	st.lend(a, 50)
	early := a.h.Registration(st.now)
	st.mint.Claim("a", early, st.now)
	late := a.h.Final(st.now + ms)
	st.mint.Claim("a", late, st.now+ms)
	st.procs = []*proc{b}
	st.pass(sec)
	if !st.mint.Forgettable(st.now) {
		t.Fatal("the account is in use")
	}
	st.mint.Forget()
	st.mint = st.fleet.Account(st.now)
	st.fleet.Edit(limit(1, 400), st.now) // so that next to nothing is earned beside
	for range 3 {
		st.lend(b, 60)
		b.h.Take(60, st.now)
		st.pass(100 * ms)
	}
	before := st.mint.Pool(st.now)
	st.mint.Claim("a", early, st.now)
	st.mint.Claim("a", late, st.now)
	if after := st.mint.Pool(st.now); after != before {
		t.Errorf("the pool went from %d to %d", before, after)
	}
}

func TestAnAccountThatIsForgottenAndBegunAnewHasWhatItHad(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1})
	a := st.join("a", 1)
	st.pass(10 * sec)
	st.lend(a, 5)
	a.h.Take(5, st.now)
	st.pass(100 * ms)
	if st.mint.Forgettable(st.now) {
		t.Error("the account has 5 tokens less than a new one, and could be forgotten")
	}
	fresh := st.fleet.Account(st.now)
	if got, most := fresh.Pool(st.now), 11*int64(escrow.Micro); got > most {
		t.Errorf("an account that a young leader begins has %d micro-tokens, more than was ever earned", got)
	}
}

func TestAnAccountBegunAnewInThePodRefusesWhatWasLentToItsFormerLife(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	a.h.Take(50, st.now)
	st.pass(200 * ms)
	late := st.loans["a"]
	if !a.h.Forgettable(st.now) {
		t.Fatal("an account in which nothing is left is kept for ever")
	}
	a.h.Forget()
	a.h = a.s.Account(st.now)
	a.h.Loan(late)
	if n := a.h.Available(st.now); n != 0 {
		t.Errorf("%d tokens are spent a second time", n)
	}
	st.lend(a, 10)
	if n := a.h.Available(st.now); n != 10 {
		t.Errorf("the new life of the account was lent %d, not 10", n)
	}
}

func TestWhatIsReservedIsNotReportedAsSpentAndNotReturnedTwice(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	hold, _ := a.h.Reserve(30, st.now)
	st.pass(100 * ms)
	if c := a.h.Registration(st.now); c.Spent != 0 || c.Granted-c.Returned < 30 {
		t.Errorf("claimed %+v while 30 tokens are reserved", c)
	}
	a.h.Cancel(hold)
	st.pass(100 * ms)
	if c := a.h.Registration(st.now); c.Spent != 0 || c.Returned > c.Granted {
		t.Errorf("claimed %+v after the reservation was cancelled", c)
	}
	taken, ok := a.h.Reserve(1, st.now)
	if ok {
		t.Fatal("what has been returned can be taken", taken)
	}
}

func TestWhatAKilledPodHadNotReportedIsSpent(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	before := st.pool()
	st.fleet.Gone("a", st.now)
	if st.pool() != before || st.mint.Lent() != 0 {
		t.Errorf("the pool went from %d to %d, and %d are lent, after a pod with 50 tokens was killed", before, st.pool(), st.mint.Lent())
	}
}

func TestACostIsLentWholeOrNotAtAll(t *testing.T) {
	l := limit(1, 12)
	l.MaxCost = 8
	st := newStage(t, l, escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.lend(a, 8)
	a.h.Queue(9, 9) // a keeps what it has
	b.h.Queue(8, 8)
	st.pass(20 * ms)
	if n := b.h.Available(st.now); n != 0 {
		t.Errorf("a request of cost 8 is lent %d, which nobody can use", n)
	}
	st.mint.Claim("a", a.h.Final(st.now), st.now)
	st.pass(20 * ms)
	if n := b.h.Available(st.now); n != 8 {
		t.Errorf("a request of cost 8 is lent %d once there is enough", n)
	}
}

func TestFiftyPodsTakeAllOfFivePerHourAndNoMore(t *testing.T) {
	l := escrow.Limit{Requests: 5, Period: uint64(3600 * sec), Burst: 5}
	st := newStage(t, l, escrow.Recovery{Epoch: 1, First: true})
	for i := range 50 {
		st.join(string(rune('A'+i)), 1)
	}
	var taken int64
	for range 200 {
		for _, p := range st.procs {
			p.h.Queue(1, 1)
			if p.h.Take(1, st.now) {
				taken++
			}
		}
		st.pass(ms)
	}
	if taken != 5 {
		t.Errorf("50 pods admitted %d of a burst of 5", taken)
	}
}

func TestEachReturnCreditsWhatIsNewInIt(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a, b := st.join("a", 1), st.join("b", 1)
	st.lend(a, 60)
	c := a.h.Registration(st.now)
	st.procs = []*proc{b}
	for range 2 { // so that there is room for more than comes back
		st.lend(b, 90)
		if !b.h.Take(90, st.now) {
			t.Fatal("a loan cannot be taken")
		}
		st.pass(50 * ms)
	}
	before := st.pool()
	for _, returned := range []int64{20, 20, 50, 20, 50} { // cumulative, repeated, and late
		c.Returned = returned
		c.Sent += ms
		st.mint.Claim("a", c, st.now)
	}
	if got := st.pool(); got != before+50 {
		t.Errorf("50 tokens came back in two steps, and the pool rose from %d to %d", before, got)
	}
}

func TestAPodThatHearsNothingIsNotLentMoreThanItsBound(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	a.deaf = true
	for want := int64(60); want <= 300; want += 60 {
		a.h.Queue(want, 1)
		st.pass(100 * ms)
	}
	if got := st.mint.Lent(); got > 100 {
		t.Errorf("%d tokens are on their way to a pod that may have a quarter of 400", got)
	}
}

func TestAnAccountInWhichAPodHasLoansIsNotForgottenByANewLeader(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	st.lead(limit(1, 400), escrow.Recovery{Epoch: 2, Existing: []string{"a"}})
	st.welcome(a, 2)
	if st.mint.Lent() != 50 {
		t.Fatalf("%d tokens count as lent, the pod has 50", st.mint.Lent())
	}
	if st.mint.Forgettable(st.now) {
		t.Error("the account could be begun anew beside 50 tokens that are lent, since every pool of a new leader is empty")
	}
}
