// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// settler is a bucket of one kind under test: take, settle, and what is left.
type settler struct {
	take   func(t Time, cost uint64) Decision
	settle func(t Time, taken, actual uint64, debt Tokens) Tokens
	peek   func(t Time, cost uint64) Decision
}

func settledBuckets(tb interface{ Fatal(...any) }, r Rate, burst Tokens) map[string]settler {
	b, err := NewTokenBucketAt(0, r, burst, Full)
	if err != nil {
		tb.Fatal(err)
	}
	k, err := NewKeyedAt(0, r, burst, Full, 64)
	if err != nil {
		tb.Fatal(err)
	}
	const key = 42
	return map[string]settler{
		"a bucket": {b.TakeAt, b.SettleAt, b.PeekAt},
		"a key of a store": {
			func(t Time, c uint64) Decision { return k.TakeHashAt(t, key, c) },
			func(t Time, taken, actual uint64, debt Tokens) Tokens {
				return k.SettleHashAt(t, key, taken, actual, debt)
			},
			func(t Time, c uint64) Decision { return k.PeekHashAt(t, key, c) },
		},
	}
}

func TestARequestThatCostLessThanItsEstimateGivesTheRestBack(t *testing.T) {
	for name, b := range settledBuckets(t, PerSecond(10), 100*Token) {
		t.Run(name, func(t *testing.T) {
			b.take(0, 60)
			if over := b.settle(0, 60, 10, 0); over != 0 {
				t.Errorf("%v left over", over)
			}
			if got := b.peek(0, 0).Remaining; got != 90*Token {
				t.Errorf("%v remain, want 90", got)
			}
		})
	}
}

func TestWhatComesBackToAFullBucketIsGone(t *testing.T) {
	for name, b := range settledBuckets(t, PerSecond(10), 100*Token) {
		t.Run(name, func(t *testing.T) {
			b.take(0, 60)
			later := Time(time.Hour)
			b.settle(later, 60, 10, 0)
			if got := b.peek(later, 0).Remaining; got != 100*Token {
				t.Errorf("%v remain, want the burst", got)
			}
			b.take(later, 100)
			if b.take(later, 1).Allowed {
				t.Error("the same tokens were spent twice")
			}
		})
	}
}

func TestARequestThatCostMoreIsPaidByThoseAfterIt(t *testing.T) {
	for name, b := range settledBuckets(t, PerSecond(10), 100*Token) {
		t.Run(name, func(t *testing.T) {
			b.take(0, 50)
			if over := b.settle(0, 50, 180, 40*Token); over != 40*Token {
				t.Errorf("%v was let go, want 40: 50 were there and 40 could be owed", over)
			}
			d := b.take(0, 1)
			if want := 4100 * time.Millisecond; d.Allowed || d.RetryAfter != want {
				t.Errorf("%+v, want a denial for %v", d, want)
			}
			if !b.take(Time(4100*time.Millisecond), 1).Allowed {
				t.Error("denied after the time that was named")
			}
		})
	}
}

func TestADebtOfZeroTakesWhatThereIsAndNoMore(t *testing.T) {
	for name, b := range settledBuckets(t, PerSecond(10), 100*Token) {
		t.Run(name, func(t *testing.T) {
			if over := b.settle(0, 0, 130, 0); over != 30*Token {
				t.Errorf("%v was let go, want 30", over)
			}
			if d := b.take(0, 1); d.Allowed || d.RetryAfter != 100*time.Millisecond {
				t.Errorf("%+v, want a denial for 100ms", d)
			}
		})
	}
}

// Whatever is estimated, and whatever it turns out to have cost, the net of it never exceeds the law with the debt added.
func TestSettlingNeverAdmitsMoreThanTheLawAndTheDebt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate, burst := rapid.Uint32Range(1, 100).Draw(rt, "rate"), rapid.Int64Range(1, 50).Draw(rt, "burst")
		debt := Tokens(rapid.Int64Range(0, 50).Draw(rt, "debt")) * Token
		for name, b := range settledBuckets(rt, PerSecond(rate), Tokens(burst)*Token) {
			now, spent := Time(0), Tokens(0)
			steps := rapid.IntRange(1, 60).Draw(rt, "steps")
			for range steps {
				now += Time(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "pause"))
				estimate, actual := rapid.Uint64Range(1, 20).Draw(rt, "estimate"), rapid.Uint64Range(0, 60).Draw(rt, "actual")
				if !b.take(now, estimate).Allowed {
					continue
				}
				over := b.settle(now, estimate, actual, debt)
				spent += Tokens(actual)*Token - over
				earned := float64(rate) * time.Duration(now).Seconds() * float64(Token)
				if most := float64(burst)*float64(Token) + earned + float64(debt) + 1; float64(spent) > most {
					rt.Fatalf("%s: %v spent by %v, at most %v", name, spent, time.Duration(now), Tokens(most))
				}
			}
		}
	})
}
