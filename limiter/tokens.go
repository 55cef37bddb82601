// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math"
	"math/bits"
	"strconv"
)

// Tokens is an amount of tokens, counted in millionths so that a share of a burst need not be whole. As with
// time.Duration, an amount is written as a multiple of its unit: 200*limiter.Token. Negative amounts are meaningless
// and are treated as none.
type Tokens int64

const (
	// Token is one token, the price of a request of cost 1.
	Token Tokens = 1_000_000

	// MaxBurst is the largest burst that a limiter accepts: 500 thousand million tokens.
	MaxBurst = 500_000_000_000 * Token

	// Full is a level for constructors: as many tokens as the burst has room for.
	Full Tokens = math.MaxInt64
)

// Part returns num/den of k, rounded down to a millionth of a token: the shares of one burst never add up to more than
// the burst. It returns 0 if den is 0 and saturates at the largest amount.
func (k Tokens) Part(num, den uint64) Tokens {
	if den == 0 || k <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(k), num)
	if hi >= den {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, den)
	return Tokens(min(q, math.MaxInt64))
}

// Whole returns the number of whole tokens in k.
func (k Tokens) Whole() uint64 { return uint64(max(k, 0) / Token) }

// String formats k as a decimal number of tokens.
func (k Tokens) String() string {
	return strconv.FormatFloat(float64(k)/float64(Token), 'f', -1, 64)
}

// price is the amount that a cost of n whole tokens takes. A cost that no burst can hold becomes one that every limiter
// refuses.
func price(n uint64) uint64 {
	if n > uint64(MaxBurst/Token) {
		return 2 * uint64(MaxBurst)
	}
	return n * uint64(Token)
}
