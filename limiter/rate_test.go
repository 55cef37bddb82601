// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestARateOutOfRangeIsRefused(t *testing.T) {
	tests := map[string]struct {
		tokens uint64
		period time.Duration
		want   error
	}{
		"nothing at all":                           {0, time.Second, nil},
		"one in 146 years":                         {1, 1 << 62, nil},
		"the highest":                              {MaxRate, time.Second, nil},
		"the highest in a nanosecond":              {1000, 1, nil},
		"a period of nothing":                      {1, 0, ErrRate},
		"a period below nothing":                   {1, -1, ErrRate},
		"one more than the highest":                {MaxRate + 1, time.Second, ErrRate},
		"more than the highest in a nanosecond":    {1001, 1, ErrRate},
		"so many tokens that they would overflow":  {math.MaxUint64, time.Second, ErrRate},
		"as many, but over a long enough period":   {math.MaxUint64, math.MaxInt64, nil},
		"a highest rate that needs to be rounded":  {1<<62 + 1, 1 << 61, nil},
		"an hour's worth of more than the highest": {3600*MaxRate + 1, time.Hour, ErrRate},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := NewRate(tc.tokens, tc.period)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err == nil && r.IsZero() != (tc.tokens == 0) {
				t.Errorf("got %v", r)
			}
		})
	}
}

func TestEqualRatesAreEqualHoweverTheyAreWritten(t *testing.T) {
	a, _ := NewRate(120, 2*time.Minute)
	if a != PerSecond(1) || PerMinute(60) != PerSecond(1) || PerHour(3600) != PerSecond(1) {
		t.Error("a reconfiguration to the same rate would look like a change")
	}
	if PerSecond(0) != (Rate{}) || PerSecond(7).Part(3, 3) != PerSecond(7) {
		t.Error("got unequal rates")
	}
}

func TestPartsOfARateAreExactOrBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		num, den := rapid.Uint64().Draw(t, "num"), rapid.Uint64Range(1, math.MaxUint64).Draw(t, "den")
		if rapid.Bool().Draw(t, "small") {
			num, den = num%1000, den%1000+1
		}
		want := new(big.Rat).Mul(perNano(r), new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den)))
		got := perNano(r.Part(num, den))
		if want.Cmp(rat(MaxRate/1000)) > 0 {
			if got.Sign() != 0 {
				t.Fatalf("%d/%d of %v is above the highest rate, got %s", num, den, r, got)
			}
			return
		}
		if got.Cmp(want) > 0 {
			t.Fatalf("%d/%d of %v is %s, more than %s", num, den, r, got, want)
		}
		loss := new(big.Rat).Sub(want, got)
		bound := new(big.Rat).Mul(want, new(big.Rat).SetFrac64(1, 1<<33))
		tiny := new(big.Rat).SetFrac64(int64(Token), 1<<62) // one token in 146 years
		if want.Cmp(tiny) >= 0 && loss.Cmp(bound) > 0 {
			t.Fatalf("%d/%d of %v is %s, too far below %s", num, den, r, got, want)
		}
	})
}

func TestSharesOfABurstNeverAddUpToMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := drawBurst(t), rapid.Uint64Range(1, 100).Draw(t, "pods")
		sum := Tokens(0)
		for range n {
			sum += k.Part(1, n)
		}
		if sum > k || k-sum >= Tokens(n) {
			t.Fatalf("%d shares of %v add up to %v", n, k, sum)
		}
	})
	if got := Token.Part(1, 0); got != 0 {
		t.Errorf("got %v", got)
	}
	if got := MaxBurst.Part(math.MaxUint64, 1); got != math.MaxInt64 {
		t.Errorf("got %v", got)
	}
}

func TestTheTimeToEarnAnAmountIsTheShortestThatEarnsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, k := drawRate(t), drawBurst(t)
		d := r.Duration(k)
		earns := func(d time.Duration) bool {
			return new(big.Rat).Mul(perNano(r), rat(int64(d))).Cmp(rat(int64(k))) >= 0
		}
		switch {
		case d == Never && earns(Never-1):
			t.Fatalf("%v earns %v, not never", r, k)
		case d != Never && !earns(d):
			t.Fatalf("%v does not earn %v in %v", r, k, d)
		case d > 0 && earns(d-1):
			t.Fatalf("%v earns %v before %v", r, k, d)
		}
	})
}

func TestRatesCompareAsFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRate(t), drawRate(t)
		if got, want := r.Compare(s), perNano(r).Cmp(perNano(s)); got != want {
			t.Fatalf("%v and %v compare as %d, want %d", r, s, got, want)
		}
		if (r == s) != (r.Compare(s) == 0) {
			t.Fatalf("%v and %v are equal one way only", r, s)
		}
	})
}

func TestRatesAndAmountsAreReadable(t *testing.T) {
	for got, want := range map[string]string{
		PerSecond(5).Part(1, 3).String(): "1/600ms",
		(Rate{}).String():                "0",
		(3 * Token / 2).String():         "1.5",
		Tokens(1).String():               "0.000001",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if n, d := PerMinute(1).Fraction(); n != 1 || d != time.Minute {
		t.Errorf("got %d per %v", n, d)
	}
	if got := PerMinute(30).PerSecond(); got != 0.5 {
		t.Errorf("got %v", got)
	}
}
