// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestReservationsQueueUp(t *testing.T) {
	b := newBucket(t, 0, PerSecond(10), 2*Token, Full)
	for i, tc := range []struct {
		cost uint64
		most time.Duration
		ok   bool
		wait time.Duration
	}{
		{2, 0, true, 0},
		{1, 99 * time.Millisecond, false, 100 * time.Millisecond},
		{1, 100 * time.Millisecond, true, 100 * time.Millisecond},
		{2, time.Second, true, 300 * time.Millisecond},
		{3, time.Hour, false, Never},
		{0, 0, true, 0},
		{1, time.Second, true, 400 * time.Millisecond},
	} {
		if r := b.ReserveAt(0, tc.cost, tc.most); r.OK != tc.ok || r.Wait != tc.wait {
			t.Errorf("reservation %d: got %v, %v, want %v, %v", i, r.OK, r.Wait, tc.ok, tc.wait)
		}
	}
	if b.AllowAt(400*second/1000, 1) {
		t.Error("tokens that are reserved were granted to another")
	}
	if r := newBucket(t, 0, Rate{}, Token, 0).ReserveAt(0, 1, Never); r.OK || r.Wait != Never {
		t.Errorf("a bucket that earns nothing reserved: %+v", r)
	}
}

func TestACancelledReservationLeavesTheBucketAsItWouldHaveBeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := drawRate(t), drawBurst(t)
		a, b := new(TokenBucket), new(TokenBucket)
		a.nums.Store(newNumbers(0, rate, uint64(burst)))
		b.nums.Store(newNumbers(0, rate, uint64(burst)))
		at := Time(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			at = at.Add(drawStep(t, rate, burst))
			if rapid.Bool().Draw(t, "reserve") {
				r := b.ReserveAt(at, drawCost(t, burst), Never-1)
				at = at.Add(drawStep(t, rate, burst))
				if rapid.IntRange(0, 4).Draw(t, "reconfigure") == 0 {
					rate, burst = drawRate(t), drawBurst(t)
					_ = a.ReconfigureAt(at, rate, burst, AsEarned)
					_ = b.ReconfigureAt(at, rate, burst, AsEarned)
				}
				if ok := r.OK; r.Cancel() != ok && b.nums.Load().shifts == r.shifts && r.mark != r.old {
					t.Fatal("the last reservation could not be cancelled")
				} else if ok && b.nums.Load().shifts != r.shifts {
					return
				}
				if r.Cancel() {
					t.Fatal("a reservation was cancelled twice")
				}
			}
			cost := drawCost(t, a.PeekAt(at, 0).Remaining)
			if got, want := b.TakeAt(at, cost), a.TakeAt(at, cost); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}

func TestAReservationThatOthersQueuedBehindStaysTaken(t *testing.T) {
	b := newBucket(t, 0, PerSecond(1), Token, Full)
	first, second := b.ReserveAt(0, 1, time.Hour), b.ReserveAt(0, 1, time.Hour)
	if first.Cancel() {
		t.Error("the next to come would act together with the second")
	}
	if !second.Cancel() {
		t.Error("the last in the queue could not leave")
	}
	if r := b.ReserveAt(0, 1, time.Hour); r.Wait != time.Second {
		t.Errorf("got %v", r.Wait)
	}
}

func TestWaitingForTokensTakesAsLongAsEarningThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(t, Now(), PerSecond(10), 2*Token, Full)
		k := newKeyed(t, Now(), PerSecond(10), 2*Token, Full, 10)
		for name, wait := range map[string]func(context.Context) error{
			"bucket": func(ctx context.Context) error { return b.Wait(ctx, 1) },
			"key":    func(ctx context.Context) error { return k.Wait(ctx, "a", 1) },
		} {
			begin := time.Now()
			for range 5 {
				if err := wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := time.Since(begin); got != 300*time.Millisecond {
				t.Errorf("%s: five of a burst of two took %v", name, got)
			}
			late, stop := context.WithTimeout(t.Context(), 99*time.Millisecond)
			if err := wait(late); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 300*time.Millisecond {
				t.Errorf("%s: waiting beyond the deadline: got %v after %v", name, err, time.Since(begin))
			}
			stop()
			ended, stop := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, stop)
			if err := wait(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
			if err := wait(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", name, err)
			}
			if err := wait(t.Context()); err != nil || time.Since(begin) != 400*time.Millisecond {
				t.Errorf("%s: who gave up still holds the token after %v: %v", name, time.Since(begin), err)
			}
		}
		if err := b.Wait(t.Context(), 3); !errors.Is(err, ErrLimit) {
			t.Errorf("got %v", err)
		}
		if err := k.Wait(t.Context(), "b", 3); !errors.Is(err, ErrLimit) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitingForAWindowEndsWithTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := NewFixedWindow(1, time.Second)
		s, _ := NewSlidingWindow(1, time.Second)
		l, _ := NewSlidingLog(1, time.Second)
		for name, wait := range map[string]func(context.Context, uint64) error{"fixed": f.Wait, "sliding": s.Wait, "log": l.Wait} {
			for range 3 {
				if err := wait(t.Context(), 1); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := wait(t.Context(), 2); !errors.Is(err, ErrLimit) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
