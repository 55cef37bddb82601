// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"
)

// ErrRate is returned for a rate that cannot be: no period, or more than MaxRate.
var ErrRate = errors.New("limiter: rate out of range")

const (
	// MaxRate is the highest rate that can be asked for, in tokens per second.
	MaxRate = 1_000_000_000_000

	maxRateTokens = 1 << 43 // times Token it stays below 1<<63
	maxRatePeriod = 1 << 62
)

// Rate is an exact number of tokens per period, kept as a reduced fraction, so that 5 per hour stays 5 per hour for
// years. Two rates are equal (==) exactly when they are the same rate. The zero value earns nothing.
type Rate struct {
	tokens uint64 // numerator, at most maxRateTokens
	period uint64 // denominator in nanoseconds, at most maxRatePeriod; 0 only in the zero value
}

// NewRate returns the rate of the given whole tokens per period, from nothing up to MaxRate. It fails with ErrRate if
// the period is not positive or the rate is above MaxRate.
func NewRate(tokens uint64, period time.Duration) (Rate, error) {
	if period <= 0 {
		return Rate{}, fmt.Errorf("%w: period %v", ErrRate, period)
	}
	hi, lo := bits.Mul64(tokens, uint64(time.Second))
	maxHi, maxLo := bits.Mul64(MaxRate, uint64(period))
	if hi > maxHi || hi == maxHi && lo > maxLo {
		return Rate{}, fmt.Errorf("%w: %d tokens per %v", ErrRate, tokens, period)
	}
	return newRate(0, tokens, 0, uint64(period)), nil
}

// PerSecond returns the rate of n tokens per second, at most MaxRate.
func PerSecond(n uint32) Rate { return per(n, time.Second) }

// PerMinute returns the rate of n tokens per minute.
func PerMinute(n uint32) Rate { return per(n, time.Minute) }

// PerHour returns the rate of n tokens per hour.
func PerHour(n uint32) Rate { return per(n, time.Hour) }

func per(n uint32, period time.Duration) Rate { return newRate(0, uint64(n), 0, uint64(period)) }

// Part returns num/den of r, the share that one of several holders earns. It is exact as long as the reduced fraction
// fits (tokens up to 2^43, nanoseconds up to 2^62) and else the fraction below it, less by no more than one part in
// 2^33, or nothing below one token in 146 years. Shares whose fractions add up to one therefore never earn more than r
// together. Part returns no rate if den is 0 or the result were above MaxRate.
func (r Rate) Part(num, den uint64) Rate {
	if den == 0 || num == 0 || r.tokens == 0 {
		return Rate{}
	}
	g := gcd(num, den)
	num, den = num/g, den/g
	g = gcd(r.tokens, den)
	tokens, den := r.tokens/g, den/g
	g = gcd(num, r.period)
	num, period := num/g, r.period/g
	nh, nl := bits.Mul64(tokens, num)
	dh, dl := bits.Mul64(period, den)
	part := newRate(nh, nl, dh, dl)
	if part.above(MaxRate) {
		return Rate{}
	}
	return part
}

// newRate reduces the 128-bit fraction (nh,nl)/(dh,dl) to the range of Rate, rounding down where it must.
func newRate(nh, nl, dh, dl uint64) Rate {
	if nh|dh == 0 {
		g := gcd(nl, dl)
		nl, dl = nl/g, dl/g
		if nl == 0 {
			return Rate{}
		}
		if nl <= maxRateTokens && dl <= maxRatePeriod {
			return Rate{tokens: nl, period: dl}
		}
	}
	n, d := wide(nh, nl), wide(dh, dl)
	// The most tokens that keep the period in range, in the shortest period that is not too short for them.
	tokens := new(big.Int).Mul(n, big.NewInt(maxRatePeriod))
	tokens.Div(tokens, d)
	if tokens.Sign() == 0 {
		return Rate{}
	}
	if top := big.NewInt(maxRateTokens); tokens.Cmp(top) > 0 {
		tokens = top
	}
	period := new(big.Int).Mul(tokens, d)
	period.Add(period, n).Sub(period, big.NewInt(1)).Div(period, n)
	return newRate(0, tokens.Uint64(), 0, period.Uint64())
}

func wide(hi, lo uint64) *big.Int {
	n := new(big.Int).SetUint64(hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(lo))
}

func (r Rate) above(perSecond uint64) bool {
	ah, al := bits.Mul64(r.tokens, uint64(time.Second))
	bh, bl := bits.Mul64(perSecond, r.period)
	return ah > bh || ah == bh && al > bl
}

// Compare returns -1, 0 or +1 as r is slower than, equal to or faster than s.
func (r Rate) Compare(s Rate) int {
	if r.tokens == 0 || s.tokens == 0 {
		return cmp.Compare(r.tokens, s.tokens)
	}
	ah, al := bits.Mul64(r.tokens, s.period)
	bh, bl := bits.Mul64(s.tokens, r.period)
	if ah != bh {
		return cmp.Compare(ah, bh)
	}
	return cmp.Compare(al, bl)
}

// IsZero reports whether r earns nothing.
func (r Rate) IsZero() bool { return r.tokens == 0 }

// Fraction returns r as reduced tokens per period, (0, 0) if r earns nothing.
func (r Rate) Fraction() (tokens uint64, period time.Duration) {
	return r.tokens, time.Duration(r.period)
}

// PerSecond returns r in tokens per second, rounded to a float, for display and metrics.
func (r Rate) PerSecond() float64 {
	if r.tokens == 0 {
		return 0
	}
	return float64(r.tokens) / float64(r.period) * float64(time.Second)
}

// Duration returns how long r takes to earn k, rounded up to a nanosecond: 0 for none, Never if r earns nothing or it
// takes longer than a time.Duration holds.
func (r Rate) Duration(k Tokens) time.Duration {
	if k <= 0 {
		return 0
	}
	n := newNumbers(0, r, 0)
	return time.Duration(min(n.nanos(uint64(k)), math.MaxInt64))
}

// String formats r as tokens per period.
func (r Rate) String() string {
	if r.tokens == 0 {
		return "0"
	}
	return fmt.Sprintf("%d/%v", r.tokens, time.Duration(r.period))
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func bitLen(hi, lo uint64) int {
	if hi != 0 {
		return 64 + bits.Len64(hi)
	}
	return bits.Len64(lo)
}

func shiftRight(hi, lo uint64, n int) (uint64, uint64) {
	if n >= 64 {
		return 0, hi >> (n - 64)
	}
	return hi >> n, lo>>n | hi<<(64-n)
}
