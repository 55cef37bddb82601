// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAStripedBucketKeepsTheLawAndRefusesNothingBeyondItsReserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := Time(rapid.Int64Range(-1<<62, 1<<61).Draw(t, "start"))
		rate, burst := drawRate(t), drawBurst(t)
		b, err := newStriped(at, rate, burst, Full, rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "processors"))
		if err != nil {
			t.Fatal(err)
		}
		whole := newIdeal(at, rate, burst, Full)
		less := newIdeal(at, rate, burst-b.Reserve(), Full)
		var grants []grant
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "wait") {
				at = at.Add(drawStep(t, rate, burst))
			}
			if rapid.IntRange(0, 19).Draw(t, "reconfigure") == 0 {
				rate, burst = drawRate(t), rapid.OneOf(rapid.Just(burst), rapid.Custom(drawBurst)).Draw(t, "next")
				before := b.TakeAt(at, 0).Remaining
				if err := b.ReconfigureAt(at, rate, burst, AsEarned); err != nil {
					t.Fatal(err)
				}
				if after := b.TakeAt(at, 0).Remaining; after > before || after > burst {
					t.Fatalf("reconfiguring to %v made %v of %v", burst, after, before)
				}
				whole.reconfigure(at, rate, burst, AsEarned)
				less.reconfigure(at, rate, burst-b.Reserve(), AsEarned)
			}
			home := rapid.IntRange(0, len(b.stripes)-1).Draw(t, "processor")
			cost := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Custom(func(t *rapid.T) uint64 {
				return drawCost(t, b.TakeAt(at, 0).Remaining)
			})).Draw(t, "cost")
			ok := b.stripes[home].spend(cost) || b.renew(at, home, cost)
			if have := less.balance(at); !ok && have.Cmp(less.slack.Add(less.slack, rat(int64(price(cost))))) >= 0 {
				t.Fatalf("refused %d with %s of the lesser burst there", cost, have.FloatString(3))
			} else if !ok {
				less.slack.Sub(less.slack, rat(int64(price(cost))))
			}
			whole.advance(at)
			if !ok {
				continue
			}
			grants = append(grants, grant{at, cost, whole.burst, whole.earned})
			if cost > 0 {
				if less.take(at, cost); less.balance(at).Sign() < 0 {
					less.mark = less.earned // what the reserve gave is not owed
				}
			}
		}
		lawful(t, grants, 1)
	})
}

func TestAStripedBucketTellsWhatRemainsAndWhenToComeAgain(t *testing.T) {
	b, _ := newStriped(0, PerSecond(10), 160*Token, Full, 2)
	if got := b.Reserve(); got != 20*Token {
		t.Fatalf("reserve is %v", got)
	}
	for i, want := range []Decision{
		{Allowed: true, Remaining: 100 * Token, Limit: 160 * Token},
		{Allowed: false, Remaining: 100 * Token, Limit: 160 * Token, RetryAfter: Never},
		{Allowed: false, Remaining: 100 * Token, Limit: 160 * Token, RetryAfter: 2 * time.Second},
		{Allowed: true, Remaining: 0, Limit: 160 * Token},
	} {
		if got := b.TakeAt(0, []uint64{40, 141, 120, 100}[i]); got != want {
			t.Errorf("request %d: got %+v, want %+v", i, got, want)
		}
	}
	if _, err := NewStripedBucket(PerSecond(1), -1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
	if err := b.Reconfigure(PerSecond(1), -1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
}

func TestCreditsOfAllProcessorsTogetherGrantTheBurstOnce(t *testing.T) {
	// Nothing is earned: what was there is granted, and no more, whichever processor it was credited to.
	const burst = 20_000
	b, err := newStriped(0, Rate{}, burst*Token, Full, 4)
	if err != nil {
		t.Fatal(err)
	}
	granted := uint64(b.Reserve() / Token) // what a full bucket does not hold
	var sum atomic.Uint64
	together(4, func(worker int) {
		rng := rand.New(rand.NewPCG(uint64(worker), 3))
		for range 20_000 {
			cost := rng.Uint64N(3) + 1
			home := rng.IntN(4)
			if b.stripes[home].spend(cost) || b.renew(0, home, cost) {
				sum.Add(cost)
			}
		}
	})
	for b.AllowAt(0, 1) {
		sum.Add(1)
	}
	if granted += sum.Load(); granted > burst {
		t.Errorf("granted %d of %d", granted, burst)
	}
}

func TestReconfiguringAStripedBucketUnderLoadMintsNothing(t *testing.T) {
	const burst = 50_000
	b, err := newStriped(0, Rate{}, burst*Token, Full, 4)
	if err != nil {
		t.Fatal(err)
	}
	var sum atomic.Uint64
	together(4, func(worker int) {
		rng := rand.New(rand.NewPCG(uint64(worker), 4))
		for i := range 10_000 {
			if worker == 0 && i%8 == 0 {
				_ = b.ReconfigureAt(0, Rate{}, Tokens(burst/2+rng.Int64N(burst))*Token, AsEarned)
			}
			home := rng.IntN(4)
			if b.stripes[home].spend(1) || b.renew(0, home, 1) {
				sum.Add(1)
			}
		}
	})
	if sum.Load() > burst {
		t.Errorf("granted %d of %d", sum.Load(), burst)
	}
}

func TestACreditGivenBeforeAReconfigurationIsNotSpentAfterIt(t *testing.T) {
	b, _ := newStriped(0, Rate{}, 160*Token, Full, 2)
	b.AllowAt(0, 1)
	n := b.nums.Load()
	var s *credit
	for i := range b.stripes {
		if s = &b.stripes[i]; s.word.Load() > 0 {
			break
		}
	}
	before := s.word.Load()
	if err := b.ReconfigureAt(0, Rate{}, 0, AsEarned); err != nil {
		t.Fatal(err)
	}
	if s.word.CompareAndSwap(before, before-1) {
		t.Error("a request that had read the credit before spent it afterwards")
	}
	b.deposit(n, s, 5)
	if b.AllowAt(0, 1) || b.TakeAt(0, 1).Remaining != 0 {
		t.Error("credit taken under the former burst was spent afterwards")
	}
}
