// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// windowed is what the three window limiters have in common.
type windowed interface {
	TakeAt(t Time, cost uint64) Decision
	ReconfigureAt(t Time, limit uint64, window time.Duration) error
}

// makeWindowed makes one limiter of each kind.
func makeWindowed(t rapid.TB, limit uint64, window time.Duration) map[string]windowed {
	t.Helper()
	f, err1 := NewFixedWindow(limit, window)
	s, err2 := NewSlidingWindow(limit, window)
	l, err3 := NewSlidingLog(limit, window)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return map[string]windowed{"fixed window": f, "sliding window": s, "sliding log": l}
}

func TestWindowsDecideAsTheirTracesSay(t *testing.T) {
	const ms = Time(time.Millisecond)
	type steps []step
	traces := map[string]steps{
		"fixed window": {
			{900 * ms, 4, true, 0, 0},
			{900 * ms, 1, false, 0, 100 * time.Millisecond},
			{1000*ms - 1, 1, false, 0, 1},
			{1000 * ms, 4, true, 0, 0}, // twice the limit across the edge
			{500 * ms, 1, false, 0, 1500 * time.Millisecond},
			{2500 * ms, 5, false, 4 * Token, Never},
			{2500 * ms, 3, true, 1 * Token, 0},
			{2500 * ms, 0, true, 1 * Token, 0},
		},
		"sliding window": {
			{500 * ms, 4, true, 0, 0},
			{1000 * ms, 1, false, 0, 250 * time.Millisecond}, // 4*0.75 + 1 = 4
			{1250*ms - 1, 1, false, 0, 1},
			{1250 * ms, 1, true, 0, 0},
			{1250 * ms, 2, false, 0, 500 * time.Millisecond},
			{1250 * ms, 4, false, 0, 1750 * time.Millisecond}, // the 1 of this window has to fade too
			{2000 * ms, 3, true, 0, 0},
			{2000 * ms, 5, false, 0, Never},
			{10_000 * ms, 4, true, 0, 0},
		},
		"sliding log": {
			{500 * ms, 2, true, 2 * Token, 0},
			{900 * ms, 2, true, 0, 0},
			{1000 * ms, 1, false, 0, 500 * time.Millisecond},
			{1500*ms - 1, 1, false, 0, 1},
			{1500 * ms, 1, true, 1 * Token, 0},
			{1500 * ms, 3, false, 1 * Token, 400 * time.Millisecond},
			{1500 * ms, 4, false, 1 * Token, 1000 * time.Millisecond},
			{100 * ms, 4, false, 1 * Token, 2400 * time.Millisecond},
			{1900 * ms, 3, true, 0, 0},
			{1900 * ms, 5, false, 0, Never},
			{1900 * ms, 0, true, 0, 0},
			{2600 * ms, 1, true, 0, 0},
			{3000 * ms, 1, true, 2 * Token, 0},
			{2700 * ms, 1, true, 1 * Token, 0}, // counts from when the clock was last
			{3800 * ms, 3, false, 2 * Token, 200 * time.Millisecond},
		},
	}
	for name, l := range makeWindowed(t, 4, time.Second) {
		t.Run(name, func(t *testing.T) {
			for i, s := range traces[name] {
				want := Decision{Allowed: s.want, Remaining: s.remaining, RetryAfter: s.retry, Limit: 4 * Token}
				if got := l.TakeAt(s.at, s.cost); got != want {
					t.Errorf("step %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

func TestAnImpossibleWindowIsRefused(t *testing.T) {
	for _, tc := range []struct {
		limit  uint64
		window time.Duration
	}{{1, 0}, {1, -1}, {MaxWindowLimit + 1, 1}} {
		_, err1 := NewFixedWindow(tc.limit, tc.window)
		_, err2 := NewSlidingWindow(tc.limit, tc.window)
		_, err3 := NewSlidingLog(tc.limit, tc.window)
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, ErrWindow) {
				t.Errorf("%d per %v: got %v", tc.limit, tc.window, err)
			}
		}
		for name, l := range makeWindowed(t, 1, 1) {
			if err := l.ReconfigureAt(0, tc.limit, tc.window); !errors.Is(err, ErrWindow) {
				t.Errorf("%s: %d per %v: got %v", name, tc.limit, tc.window, err)
			}
		}
	}
	if _, err := NewSlidingLog(MaxLogLimit+1, 1); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v", err)
	}
}

// within sums what was granted from one instant to before another.
func within(grants []grant, from, to Time) (sum uint64) {
	for _, g := range grants {
		if g.at >= from && g.at < to {
			sum += g.cost
		}
	}
	return sum
}

func TestWindowsGrantTheirLimitAndAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(0, 8).Draw(t, "limit")
		window := time.Duration(rapid.Int64Range(1, 40).Draw(t, "window"))
		start := Time(rapid.Int64Range(-100, 100).Draw(t, "start"))
		for name, l := range makeWindowed(t, limit, window) {
			at, grants := start, []grant(nil)
			for range 60 {
				at += Time(rapid.Int64Range(0, int64(window)).Draw(t, "step")) * Time(rapid.IntRange(0, 1).Draw(t, "wait"))
				cost := rapid.Uint64Range(0, limit+1).Draw(t, "cost")
				d := l.TakeAt(at, cost)
				edge := startOf(at, window)
				inWindow, before := within(grants, edge, at+1), within(grants, edge-Time(window), edge)
				inLast := within(grants, at-Time(window)+1, at+1)
				var want bool
				switch name {
				case "fixed window":
					want = inWindow+cost <= limit
				case "sliding log":
					want = inLast+cost <= limit
				case "sliding window":
					left := uint64(Time(window) - (at - edge))
					want = before*left+(inWindow+cost)*uint64(window) <= limit*uint64(window)
				}
				if d.Allowed != want && cost > 0 {
					t.Fatalf("%s at %d: %d of %d granted is %v; %d in this window, %d in the one before, %d in the last %v",
						name, at, cost, limit, d.Allowed, inWindow, before, inLast, window)
				}
				if d.Allowed {
					grants = append(grants, grant{at: at, cost: cost})
					continue
				}
				if (d.RetryAfter == Never) != (cost > limit) {
					t.Fatalf("%s: %d of %d is to wait %v", name, cost, limit, d.RetryAfter)
				}
			}
		}
	})
}

func TestARefusalByAWindowTellsExactlyWhenToComeAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1, 8).Draw(t, "limit")
		window := time.Duration(rapid.Int64Range(1, 40).Draw(t, "window"))
		steps := rapid.SliceOfN(rapid.Uint64Range(0, 1<<20), 1, 40).Draw(t, "steps")
		for _, early := range []Time{0, 1} {
			for name, l := range makeWindowed(t, limit, window) {
				at := Time(0)
				for _, s := range steps {
					at += Time(s % uint64(window) / 2)
					cost := s>>8%limit + 1
					d := l.TakeAt(at, cost)
					if d.Allowed {
						continue
					}
					at = at.Add(d.RetryAfter) - early
					if got := l.TakeAt(at, cost).Allowed; got != (early == 0) {
						t.Fatalf("%s: refused %d, %v after the wait of %v less %d", name, cost, got, d.RetryAfter, early)
					}
				}
			}
		}
	})
}

func TestReconfiguringAWindowForgetsNoGrant(t *testing.T) {
	for name, l := range makeWindowed(t, 10, time.Minute) {
		if !l.TakeAt(60*second, 8).Allowed {
			t.Fatal(name)
		}
		if err := l.ReconfigureAt(61*second, 5, time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := l.TakeAt(62*second, 1); d.Allowed || d.Remaining != 0 || d.Limit != 5*Token {
			t.Errorf("%s: after shrinking to 5 with 8 granted: %+v", name, d)
		}
		if err := l.ReconfigureAt(63*second, 2000, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := l.TakeAt(64*second, 1000); !d.Allowed || d.Remaining != 992*Token {
			t.Errorf("%s: after growing to 2000 with 8 granted: %+v", name, d)
		}
	}
}
