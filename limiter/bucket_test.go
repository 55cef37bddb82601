// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"testing"
	"time"
)

const second = Time(time.Second)

func newBucket(t *testing.T, at Time, r Rate, burst, level Tokens) *TokenBucket {
	t.Helper()
	b, err := NewTokenBucketAt(at, r, burst, level)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// step is one line of a trace: at an instant a cost is asked for and the whole decision is known.
type step struct {
	at        Time
	cost      uint64
	want      bool
	remaining Tokens
	retry     time.Duration
}

func TestABucketDecidesAsItsTraceSays(t *testing.T) {
	const ms = Time(time.Millisecond)
	traces := map[string]struct {
		rate         Rate
		burst, level Tokens
		steps        []step
	}{
		"a burst passes at once and then one request per interval": {PerSecond(10), 3 * Token, Full, []step{
			{0, 1, true, 2 * Token, 0},
			{0, 1, true, 1 * Token, 0},
			{0, 1, true, 0, 0},
			{0, 1, false, 0, 100 * time.Millisecond},
			{99 * ms, 1, false, 990_000, time.Millisecond},
			{100*ms - 1, 1, false, 999_999, 1},
			{100 * ms, 1, true, 0, 0},
			{100 * ms, 1, false, 0, 100 * time.Millisecond},
		}},
		"a bucket that was idle holds its burst and no more": {PerSecond(10), 3 * Token, Full, []step{
			{3600 * second, 3, true, 0, 0},
			{3600 * second, 1, false, 0, 100 * time.Millisecond},
		}},
		"a bucket created empty earns from its creation": {PerSecond(10), 3 * Token, 0, []step{
			{0, 1, false, 0, 100 * time.Millisecond},
			{100 * ms, 1, true, 0, 0},
			{1000 * ms, 3, true, 0, 0},
		}},
		"a cost above the burst never passes": {PerSecond(10), 3 * Token, Full, []step{
			{0, 4, false, 3 * Token, Never},
			{0, 1 << 63, false, 3 * Token, Never},
			{0, 3, true, 0, 0},
		}},
		"nothing is earned at no rate": {Rate{}, 2 * Token, Full, []step{
			{0, 1, true, 1 * Token, 0},
			{1e15, 1, true, 0, 0},
			{1e18, 1, false, 0, Never},
		}},
		"a cost of nothing is always granted": {PerSecond(1), 1 * Token, 0, []step{
			{0, 0, true, 0, 0},
			{0, 1, false, 0, time.Second},
			{0, 0, true, 0, 0},
		}},
		"a clock that jumps back grants nothing twice": {PerSecond(1), 2 * Token, Full, []step{
			{10 * second, 2, true, 0, 0},
			{5 * second, 1, false, 0, 6 * time.Second},
			{-5 * second, 1, false, 0, 16 * time.Second},
			{11 * second, 1, true, 0, 0},
		}},
		"five per hour are granted every 720 seconds": {PerHour(5), 1 * Token, Full, []step{
			{0, 1, true, 0, 0},
			{0, 1, false, 0, 720 * time.Second},
			{720*second - 1, 1, false, 999_999, 1},
			{720 * second, 1, true, 0, 0},
			{1440*second - 1, 1, false, 999_999, 1},
			{1440 * second, 1, true, 0, 0},
		}},
		"a burst below one token grants nothing": {PerSecond(1000), Token - 1, Full, []step{
			{second, 1, false, 999_999, Never},
		}},
		"a share of a third of two tokens has its own exact interval": {PerSecond(10).Part(1, 3), (4 * Token).Part(1, 3), Full, []step{
			{0, 1, true, 333_333, 0},
			{0, 1, false, 333_333, 200_000_100 * time.Nanosecond},
			{200_000_099, 1, false, 999_999, 1},
			{200_000_100, 1, true, 0, 0},
			{500_000_100, 1, true, 0, 0},
		}},
	}
	for name, tc := range traces {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t, 0, tc.rate, tc.burst, tc.level)
			for i, s := range tc.steps {
				peek := b.PeekAt(s.at, s.cost)
				got := b.TakeAt(s.at, s.cost)
				want := Decision{Allowed: s.want, Remaining: s.remaining, RetryAfter: s.retry, Limit: tc.burst}
				if got != want {
					t.Errorf("step %d: got %+v, want %+v", i, got, want)
				}
				if peek.Allowed != got.Allowed || peek.RetryAfter != got.RetryAfter {
					t.Errorf("step %d: peeked %+v, then got %+v", i, peek, got)
				}
			}
		})
	}
}

func TestAnImpossibleBurstIsRefusedAtConstruction(t *testing.T) {
	for _, burst := range []Tokens{-1, MaxBurst + 1} {
		if _, err := NewTokenBucket(PerSecond(1), burst); !errors.Is(err, ErrBurst) {
			t.Errorf("burst %v: got %v", burst, err)
		}
	}
	b := newBucket(t, 0, PerSecond(1), Token, Full)
	if err := b.Reconfigure(PerSecond(1), MaxBurst+1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
	if r, burst := b.Config(); r != PerSecond(1) || burst != Token {
		t.Errorf("a refused change left %v, %v", r, burst)
	}
}

func TestAFullBurstPassesAtOnceAtAnyInstant(t *testing.T) {
	// At most instants the count of earned tokens is not whole; the last of the burst must not be lost to that.
	for _, rate := range []Rate{PerHour(5), PerSecond(7), PerSecond(10).Part(1, 3), PerSecond(3_000_000_000)} {
		for at := Time(1); at < 1<<40; at = at*3 + 1 {
			b := newBucket(t, 0, rate, 4*Token, Full)
			for i := range 4 {
				if !b.AllowAt(at, 1) {
					t.Fatalf("%v at %d: request %d of a burst of 4 was refused", rate, at, i)
				}
			}
		}
	}
}
