// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"
)

const week = 7 * 24 * time.Hour

// greedy asks for one token at every interval over a week and returns how many it got from each bucket.
func greedy(t *testing.T, every time.Duration, buckets ...*TokenBucket) int {
	t.Helper()
	n := 0
	for at := time.Duration(0); at <= week; at += every {
		for _, b := range buckets {
			for b.AllowAt(Time(at), 1) {
				n++
			}
		}
	}
	return n
}

func TestFivePerHourIsStillFivePerHourAfterAWeek(t *testing.T) {
	const want = 1 + 5*24*7
	b := newBucket(t, 0, PerHour(5), Token, Full)
	if got := greedy(t, time.Second, b); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if d := b.PeekAt(Time(week), 1); d.RetryAfter != 720*time.Second || d.Remaining != 0 {
		t.Errorf("a week later the phase has moved: %+v", d)
	}
}

func TestRatesThatDoNotDivideASecondDoNotDrift(t *testing.T) {
	for _, tc := range []struct {
		tokens uint64
		period time.Duration
	}{{7, time.Minute}, {1, 7 * time.Second}, {11, 13 * time.Minute}, {999, time.Hour}} {
		r, _ := NewRate(tc.tokens, tc.period)
		want := 10 + int(tc.tokens*uint64(week)/uint64(tc.period))
		if got := greedy(t, time.Second, newBucket(t, 0, r, 10*Token, Full)); got != want {
			t.Errorf("%v: got %d, want %d", r, got, want)
		}
	}
}

func TestThirdsOfALimitAdmitAsMuchAsTheWholeOverAWeek(t *testing.T) {
	// 5 per hour and pod-thirds of it: each earns 5/3 per hour, exactly 280 in a week.
	third := PerHour(5).Part(1, 3)
	var pods []*TokenBucket
	for range 3 {
		pods = append(pods, newBucket(t, 0, third, Token, 0))
	}
	if got := greedy(t, time.Second, pods...); got != 840 {
		t.Errorf("got %d, want 840", got)
	}
}

func TestARateThatChangesEveryFewSecondsLosesNothing(t *testing.T) {
	// 5 and 7 per hour in turn, off every tenth time, three seconds each: what the rates earn is 5.4 per hour.
	b := newBucket(t, 0, PerHour(5), 2*Token, 0)
	rates := [10]Rate{PerHour(5), PerHour(7), PerHour(5), PerHour(7), {}, PerHour(5), PerHour(7), PerHour(5), PerHour(7), PerHour(6)}
	n := 0
	for i, at := 0, time.Duration(0); at < week; i, at = i+1, at+3*time.Second {
		if err := b.ReconfigureAt(Time(at), rates[i%10], 2*Token, AsEarned); err != nil {
			t.Fatal(err)
		}
		if b.AllowAt(Time(at), 1) {
			n++
		}
	}
	if want := 54 * 24 * 7 / 10; n != want {
		t.Errorf("got %d, want %d", n, want)
	}
}

func TestARateThatIsTurnedOnForAMillisecondAtATimeEarns(t *testing.T) {
	b := newBucket(t, 0, Rate{}, Token, 0)
	at := Time(0)
	for range 100_000 {
		_ = b.ReconfigureAt(at, PerHour(5), Token, AsEarned)
		at += second / 1000
		_ = b.ReconfigureAt(at, Rate{}, Token, AsEarned)
		at += second / 1000
	}
	// 100 s at 5 per hour are 138,888 millionths; each change may cost what is earned in a nanosecond.
	if got := b.PeekAt(at, 0).Remaining; got > 138_888 || got < 138_887 {
		t.Errorf("earned %v", got)
	}
}

func TestTheHighestRatesGoOnForAWeek(t *testing.T) {
	// At 10^12 per second the marks are shifted back every two seconds.
	r, _ := NewRate(MaxRate, time.Second)
	b := newBucket(t, 0, r, MaxBurst, 0)
	k := newKeyed(t, 0, r, MaxBurst, 0, 4)
	for at := Time(0); at < Time(week); at += 750 * second / 1000 * 100 {
		for step := range Time(3) {
			now, cost := at+step*second/4, uint64(MaxRate/4)
			want := at > 0 || step > 0
			if got := b.AllowAt(now, cost); got != want {
				t.Fatalf("at %v got %v", now, got)
			}
			if got := k.TakeHashAt(now, uint64(at), cost).Allowed; got != want {
				t.Fatalf("at %v got %v of a key", now, got)
			}
		}
	}
}
