// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"
)

func TestTimeToldFromTheCycleCounterIsThatOfTheClock(t *testing.T) {
	const perMillisecond = 2_500_000 // 2.5 GHz
	now := &counted{count: 1 << 63, time: second}
	for i := range 1000 {
		next, ok := now.next(now.count+100*perMillisecond, now.time+Time(100*time.Millisecond))
		if !ok {
			t.Fatalf("measurement %d was not trusted", i)
		}
		for _, ms := range []uint64{0, 1, 50, 99} {
			got, ok := next.at(next.count + ms*perMillisecond)
			want := next.time + Time(ms)*Time(time.Millisecond)
			if off := want - got; !ok || off < 0 || off > 1 {
				t.Fatalf("after %d ms: off by %d ns, %v", ms, off, ok)
			}
		}
		if _, ok := next.at(next.count + 101*perMillisecond); ok {
			t.Fatal("a measurement was used for longer than it holds")
		}
		if _, ok := next.at(next.count - 1); ok {
			t.Fatal("a counter that went back was used")
		}
		now = next
	}
}

func TestACounterThatDoesNotKeepTimeIsNotTrusted(t *testing.T) {
	const count, ms = 1 << 40, 2_500_000
	base := counted{count: count, time: second}
	first, ok := base.next(count+10*ms, second+Time(10*time.Millisecond))
	if !ok {
		t.Fatal("a good counter was not trusted")
	}
	tests := map[string]struct {
		from  *counted
		count uint64
		time  Time
		want  bool
	}{
		"as measured before":            {first, first.count + 100*ms, first.time + Time(100*time.Millisecond), true},
		"as the kernel slews its clock": {first, first.count + 100*ms, first.time + Time(100*time.Millisecond) + 50_000, true},
		"a thousandth and more faster":  {first, first.count + 100*ms, first.time + Time(100*time.Millisecond) - 101_000, false},
		"a thousandth and more slower":  {first, first.count + 100*ms, first.time + Time(100*time.Millisecond) + 101_000, false},
		"counting on during a suspend":  {first, first.count + 3_600_000*ms, first.time + Time(100*time.Millisecond), false},
		"started anew":                  {first, 5, first.time + Time(100*time.Millisecond), false},
		"stopped":                       {first, first.count, first.time + Time(100*time.Millisecond), false},
		"a clock that went back":        {first, first.count + 100*ms, first.time - 1, false},
		"slower than a nanosecond":      {&base, count + 1000, second + 1000, false},
		"absurdly fast":                 {&base, count + 1<<62, second + 1, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, ok := tc.from.next(tc.count, tc.time); ok != tc.want {
				t.Errorf("got %v, want %v", ok, tc.want)
			}
		})
	}
}

func TestTheFastClockNeverFallsBehindReadingsOfTheSlowOneByMuch(t *testing.T) {
	// On any machine, with whatever it reads, and through its first measurements. The bound is far above its
	// resolution; what it excludes is a clock with another origin or unit.
	for begin := Now(); Now() < begin.Add(30*time.Millisecond); {
		before := Now()
		fast := FastNow()
		after := Now()
		if fast < before.Add(-time.Millisecond) || fast > after.Add(time.Millisecond) {
			t.Fatalf("%d is not between %d and %d (%s)", fast, before, after, ClockSource())
		}
	}
	if s := ClockSource(); s != "tsc" && s != "monotonic" {
		t.Errorf("got %q", s)
	}
}
