// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func newLeaky(t rapid.TB, at Time, r Rate, room Tokens) *LeakyBucket {
	t.Helper()
	b, err := NewLeakyBucketAt(at, r, room)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAQueueTellsEveryoneTheirTurn(t *testing.T) {
	const ms = time.Millisecond
	b := newLeaky(t, 0, PerSecond(10), 3*Token)
	for i, tc := range []struct {
		at   time.Duration
		cost uint64
		want Turn
	}{
		{0, 1, Turn{Decision{Allowed: true, Remaining: 2 * Token, Limit: 3 * Token}, 0}},
		{0, 1, Turn{Decision{Allowed: true, Remaining: 1 * Token, Limit: 3 * Token}, 100 * ms}},
		{0, 1, Turn{Decision{Allowed: true, Remaining: 0, Limit: 3 * Token}, 200 * ms}},
		{0, 1, Turn{Decision{RetryAfter: 100 * ms, Limit: 3 * Token}, 0}},
		{50 * ms, 1, Turn{Decision{RetryAfter: 50 * ms, Remaining: Token / 2, Limit: 3 * Token}, 0}},
		{100 * ms, 1, Turn{Decision{Allowed: true, Remaining: 0, Limit: 3 * Token}, 200 * ms}},
		{100 * ms, 4, Turn{Decision{RetryAfter: Never, Limit: 3 * Token}, 0}},
		{10_000 * ms, 2, Turn{Decision{Allowed: true, Remaining: 1 * Token, Limit: 3 * Token}, 0}},
		{10_000 * ms, 1, Turn{Decision{Allowed: true, Remaining: 0, Limit: 3 * Token}, 200 * ms}},
		{10_000 * ms, 0, Turn{Decision{Allowed: true, Remaining: 0, Limit: 3 * Token}, 300 * ms}},
	} {
		if got := b.TakeAt(Time(tc.at), tc.cost); got != tc.want {
			t.Errorf("request %d: got %+v, want %+v", i, got, tc.want)
		}
	}
}

func TestWhatLeavesAQueueIsSpacedByTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, room := drawRate(t), drawBurst(t)
		b, r := newLeaky(t, 0, rate, room), perNano(rate)
		at := Time(0)
		var leaves Time
		var cost uint64
		first := true
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at = at.Add(drawStep(t, rate, room))
			c := drawCost(t, b.TakeAt(at, 0).Remaining)
			turn := b.TakeAt(at, c)
			if !turn.Allowed || c == 0 {
				if later := at.Add(turn.RetryAfter); !turn.Allowed && turn.RetryAfter != Never && later.Sub(at) == turn.RetryAfter {
					n, l := b.load(later)
					w := b.word.Load()
					if queued := max(w, l.earned) - l.earned; queued+price(c) > n.room {
						t.Fatalf("no room for %d after the wait of %v", c, turn.RetryAfter)
					}
				}
				continue
			}
			next := at.Add(turn.Wait)
			drained := new(big.Rat).Mul(r, rat(int64(next-leaves)+1)) // turns are rounded up to a nanosecond
			drained.Add(drained, rat(1))
			if !first && drained.Cmp(rat(int64(price(cost)))) < 0 {
				t.Fatalf("a cost of %d left at %d and the next at %d, when only %s had drained", cost, leaves, next, drained.FloatString(3))
			}
			first, leaves, cost = false, next, c
		}
	})
}

func TestAQueueKeepsItsPlacesWhenItIsReconfigured(t *testing.T) {
	b := newLeaky(t, 0, PerSecond(10), 10*Token)
	for range 6 {
		b.TakeAt(0, 1)
	}
	if err := b.ReconfigureAt(0, PerSecond(1), 3*Token); err != nil {
		t.Fatal(err)
	}
	if got := b.TakeAt(0, 1); got.Allowed || got.RetryAfter != 4*time.Second {
		t.Errorf("in a queue of 6 with room for 3: %+v", got)
	}
	if got := b.TakeAt(4*second, 1); !got.Allowed || got.Wait != 2*time.Second {
		t.Errorf("behind 2 that leave one a second: %+v", got)
	}
	if err := b.Reconfigure(PerSecond(1), -1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
	if _, err := NewLeakyBucket(PerSecond(1), MaxBurst+1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
}

func TestWaitingInAQueueEndsAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaky(t, Now(), PerSecond(10), 3*Token)
		begin := time.Now()
		for i := range 3 {
			if err := b.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(begin), time.Duration(i)*100*time.Millisecond; got != want {
				t.Errorf("request %d went on after %v, want %v", i, got, want)
			}
		}
		if err := b.Wait(t.Context(), 4); !errors.Is(err, ErrLimit) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPlaceAtTheEndOfAQueueThatIsGivenUpIsFreeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaky(t, Now(), PerSecond(1), 2*Token)
		b.Take(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Wait(ctx, 1) }()
		synctest.Wait()
		if err := b.Wait(t.Context(), 1); !errors.Is(err, ErrFull) {
			t.Errorf("a queue with two in it: got %v", err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second/2)
		defer stop()
		if err := b.Wait(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a turn after the deadline: got %v", err)
		}
		if turn := b.Take(1); !turn.Allowed || turn.Wait != time.Second {
			t.Errorf("two places were given up: %+v", turn)
		}
	})
}
