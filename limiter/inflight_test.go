// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newConcurrency(t *testing.T, limit uint64) *Concurrency {
	t.Helper()
	c, err := NewConcurrency(limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNoMoreThanTheLimitIsInFlight(t *testing.T) {
	c := newConcurrency(t, 3)
	for i, want := range []Decision{
		{Allowed: true, Remaining: 1 * Token, Limit: 3 * Token},
		{Allowed: false, Remaining: 1 * Token, Limit: 3 * Token},
		{Allowed: false, Remaining: 1 * Token, Limit: 3 * Token, RetryAfter: Never},
	} {
		if got := c.Acquire(uint64(i) + 2); got != want {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
	c.Release(2)
	if got := c.InFlight(); got != 0 || !c.Acquire(3).Allowed {
		t.Errorf("%d in flight after everything was released", got)
	}
	if err := c.SetLimit(1); err != nil {
		t.Fatal(err)
	}
	c.Release(2)
	if c.Acquire(1).Allowed {
		t.Error("granted beyond a limit that was lowered")
	}
	c.Release(9)
	if !c.Acquire(1).Allowed || c.InFlight() != 1 {
		t.Error("releasing too much left something in flight")
	}
	if err := c.SetLimit(MaxWindowLimit + 1); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v", err)
	}
	if _, err := NewConcurrency(MaxWindowLimit + 1); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v", err)
	}
}

func TestALimitOnConcurrencyHoldsUnderConcurrency(t *testing.T) {
	c := newConcurrency(t, 3)
	var inside, most atomic.Int64
	together(8, func(worker int) {
		for i := range 300 {
			cost := uint64(i+worker)%3 + 1
			if worker%2 == 0 {
				if !c.Acquire(cost).Allowed {
					continue
				}
			} else if c.Wait(context.Background(), cost) != nil {
				t.Error("not served")
			}
			n := inside.Add(int64(cost))
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			inside.Add(-int64(cost))
			c.Release(cost)
		}
	})
	if most.Load() > 3 || c.InFlight() != 0 {
		t.Errorf("up to %d were inside, and %d stayed", most.Load(), c.InFlight())
	}
}

func TestWaitersForConcurrencyAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConcurrency(t, 2)
		c.Acquire(2)
		served := make(chan uint64, 3)
		for _, cost := range []uint64{2, 1, 1} {
			go func() {
				if c.Wait(t.Context(), cost) == nil {
					served <- cost
				}
			}()
			synctest.Wait()
		}
		if c.Acquire(0).Allowed {
			t.Error("somebody overtook those who wait")
		}
		c.Release(1)
		synctest.Wait()
		if len(served) != 0 {
			t.Error("a small cost overtook the large one that came first")
		}
		c.Release(1)
		synctest.Wait()
		if len(served) != 1 || <-served != 2 {
			t.Error("the first was not served")
		}
		c.Release(2)
		synctest.Wait()
		if len(served) != 2 {
			t.Error("the others were not served")
		}
	})
}

func TestAWaiterForConcurrencyThatGivesUpHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConcurrency(t, 2)
		c.Acquire(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan error, 2)
		go func() { done <- c.Wait(ctx, 2) }()
		synctest.Wait()
		go func() { done <- c.Wait(t.Context(), 1) }()
		synctest.Wait()
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("who waited behind one that gave up was not served: %v", err)
		}
		if err := c.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := c.Wait(t.Context(), 3); !errors.Is(err, ErrLimit) {
			t.Errorf("got %v", err)
		}
		go func() { done <- c.Wait(t.Context(), 2) }()
		synctest.Wait()
		if err := c.SetLimit(1); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, ErrLimit) {
			t.Errorf("who waits for more than a limit that was lowered: %v", err)
		}
		c.Release(2)
		if c.InFlight() != 0 {
			t.Errorf("%d in flight", c.InFlight())
		}
	})
}
