// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

// pursed is a process with n tokens lent to it, in its purse.
func pursed(n int64) (*escrow.Sleeper, *escrow.Holder) {
	s := escrow.NewSleeper(sec, 0)
	s.Welcome(escrow.Welcome{Epoch: 1}, 0)
	s.Order(escrow.Order{Epoch: 1, Seq: 1, Limit: limit(1, 1_000_000)}, 0)
	h := s.Account(1)
	h.Loan(escrow.Loan{Epoch: 1, Born: 1, Granted: n})
	h.Stock(1)
	return s, h
}

func TestATokenInThePurseIsSpentOnceHoweverManyGrab(t *testing.T) {
	const tokens = 20_000
	_, h := pursed(tokens)
	var spent, lost atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for misses := 0; misses < 1000; {
				n := int64(1 + g%3)
				switch {
				case g%2 == 0 && h.Purse().Take(n):
					spent.Add(n)
				case g%2 == 1 && h.Purse().Reserve(n):
					if lost.Add(1)%2 == 0 {
						h.Purse().Cancel(n)
						continue
					}
					h.Purse().Commit(n)
					spent.Add(n)
				default:
					misses++
				}
			}
		})
	}
	returned := int64(0)
	for now := int64(2); spent.Load()+returned < tokens && now < 3_000_000; now++ {
		switch now % 3 {
		case 0:
			h.Empty(now)
		case 1:
			h.Stock(now)
		case 2:
			h.Collect(now)
		}
	}
	wg.Wait()
	c := h.Final(10_000_000)
	if c.Spent != spent.Load() || c.Spent+c.Returned != tokens {
		t.Errorf("%d of %d tokens were spent; the claim says that %d were, and that %d come back", spent.Load(), tokens, c.Spent, c.Returned)
	}
}

func TestWhatIsReturnedIsOutOfThePurse(t *testing.T) {
	_, h := pursed(100)
	if !h.Purse().Take(30) || !h.Purse().Reserve(20) {
		t.Fatal("tokens at hand cannot be taken")
	}
	c := h.Final(sec)
	if c.Spent != 30 || c.Returned != 50 {
		t.Errorf("30 were spent and 20 are set apart; the last claim says %d spent, %d returned", c.Spent, c.Returned)
	}
	if h.Purse().Take(1) {
		t.Error("a token was handed back and spent")
	}
	h.Purse().Cancel(20)
	if c = h.Final(2 * sec); c.Spent != 30 || c.Returned != 70 {
		t.Errorf("20 more came back; the last claim says %d spent, %d returned", c.Spent, c.Returned)
	}
}

func TestASmallerShareEmptiesThePurse(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a := st.join("a", 1)
	st.pass(100 * ms)
	a.deaf, a.mute = true, true
	st.now += 10 * sec
	a.h.Stock(st.now)
	if got := a.h.Purse().Left(); got != 100 {
		t.Fatalf("the share of an isolated pod holds %d", got)
	}
	if !a.h.Purse().Reserve(40) {
		t.Fatal("tokens at hand cannot be set apart")
	}
	a.s.Order(escrow.Order{Epoch: 1, Seq: 100, Limit: limit(100, 40), Units: escrow.Whole}, st.now)
	if got := a.h.Purse().Left(); got != 0 {
		t.Errorf("%d tokens of the larger share outlived it, beside 40 for which a decision is under way", got)
	}
	if b, ok := a.s.Beat(st.now + ms); !ok || b.Acked == 100 {
		t.Error("acknowledged while a decision may still use the larger share")
	}
	a.h.Purse().Commit(40)
	a.h.Collect(st.now + sec)
	if b, ok := a.s.Beat(st.now + sec); !ok || b.Acked != 100 {
		t.Errorf("acknowledged %d after the last decision on the larger share", b.Acked)
	}
}

func TestUnusedTokensGoBackFromThePurseWhenDemandEnds(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	a.h.Stock(st.now)
	a.h.Purse().Take(10)
	for range 300 {
		st.pass(ms)
		a.h.Stock(st.now)
	}
	if got := st.mint.Lent(); got != 0 || a.h.Purse().Left() != 0 {
		t.Errorf("%d tokens are still lent, %d lie in the purse", got, a.h.Purse().Left())
	}
}

func TestAnAccountThatLivesOnLoansEarnsNothing(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a := st.join("a", 1)
	bare := a.s.Loans(st.now)
	st.pass(100 * ms)
	a.deaf, a.mute = true, true
	st.now += 10 * sec
	if got := bare.Available(st.now); got != 0 {
		t.Errorf("it has %d tokens beside the share that is kept elsewhere", got)
	}
	if parts, burst := a.s.Share(st.now); parts != escrow.Whole*1000 || burst != 100*escrow.Micro {
		t.Errorf("an isolated pod that is alone earns %d parts up to %d", parts, burst)
	}
}

func TestAFullShareEarnsNothingWhileItsTokensLieInThePurse(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a := st.join("a", 1)
	st.pass(100 * ms)
	a.deaf, a.mute = true, true
	st.now += 10 * sec
	a.h.Stock(st.now)
	st.now += 10 * sec // it stays full
	for range 100 {
		if !a.h.Purse().Take(1) {
			t.Fatal("the share of an isolated pod does not hold its burst")
		}
	}
	if n := a.h.Stock(st.now); n != 100 {
		t.Fatalf("%d tokens were found spent", n)
	}
	if got := a.h.Available(st.now); got != 0 {
		t.Errorf("100 tokens were spent at once, and %d more are there in the same instant", got)
	}
}

func TestARefundThatComesAfterTheReportIsNotCredited(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	a.h.Take(20, st.now)
	a.h.Refund(5, st.now)
	if got := a.h.Available(st.now); got != 35 {
		t.Errorf("5 of 20 tokens came back before anybody was told: %d of 50 are there", got)
	}
	st.pass(100 * ms)
	pool, lent := st.pool(), st.mint.Lent()
	a.h.Refund(15, st.now)
	if a.h.Available(st.now) > 35 || st.pool() > pool || st.mint.Lent() > lent {
		t.Errorf("tokens that the mint counts as spent are there again: %d", a.h.Available(st.now))
	}
}
