// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"math/bits"
	"time"
)

const (
	// Micro is one token: balances that grow with time are counted in millionths of a token.
	Micro = 1_000_000
	// Whole is the denominator of a share: lcm(1..24) * 1024, so that one n-th is exact for every n up to 24.
	Whole = 5_482_730_373_120

	// Sleep is D: for how long a promise to leave the sleeping part of a share alone holds, in nanoseconds. Leader and
	// processes count with the same.
	Sleep = 1_000_000_000
	// MaxTake is the most tokens that one request can take.
	MaxTake = 1 << 30

	// awakePermille is the part of a share that a pod earns all the time where a limit has keys, so that a key which
	// the mint has never heard of costs no round trip.
	awakePermille = 100
	// quarter: all shares together hold at most one part in four of the burst, and so does one pod in loans.
	quarter = 4
	// drift is how much a promise to sleep is shortened: two clocks, each off by one part in a thousand.
	drift = 500
	// forever is a time that does not come.
	forever = 1 << 61
)

// Limit is what a policy declares, in the numbers that the law is stated in.
type Limit struct {
	// Requests per Period, an exact ratio; 1 to 1e12.
	Requests uint64
	// Period in nanoseconds, at least 1.
	Period uint64
	// Burst in tokens, 1 to 1e9.
	Burst int64
	// MaxCost is the largest cost of one request, in tokens: what one pod may borrow at once even where a quarter of the
	// burst is less. 0 means 1. A request that costs more is never admitted.
	MaxCost int64
	// Keyed says that the limit has an account for each key.
	Keyed bool
}

// Outstanding is the most that one pod may have borrowed from one account and not reported as spent or returned, in tokens.
func (l Limit) Outstanding() int64 { return min(l.Burst, max(1, l.Burst/quarter, l.MaxCost)) }

// standing is how many tokens each of n processes may keep at hand without demand: together a quarter of the burst, and no
// more than a second earns, since what a process that dies has at hand is lost; or the cost of one request each where half
// of the burst has them all. Keys have none: what is awake of their shares stands by.
func (l Limit) standing(n int) int64 {
	if l.Keyed || n < 1 {
		return 0
	}
	var a accrual
	each := min(l.Burst/quarter, a.add(l, int64(time.Second), wholeParts)/Micro) / int64(n)
	if one := max(1, l.MaxCost); one <= l.Burst/2/int64(n) {
		each = max(each, one)
	}
	return min(each, l.Outstanding())
}

// shares is what all shares of the limit hold together at most, in micro-tokens.
func (l Limit) shares() int64 { return l.Burst * Micro / quarter }

// isolatedCap is the burst of a share while its pod is isolated, in micro-tokens. Below one token there is no share.
func (l Limit) isolatedCap(units uint64) int64 { return wholeTokens(units, l.shares()) }

// awakeCap is the burst of the part of a share that is earned all the time, in micro-tokens.
func (l Limit) awakeCap(units uint64) int64 {
	if !l.Keyed {
		return 0
	}
	return wholeTokens(units, l.Burst*Micro/1000*awakePermille)
}

// reservedCap is what shares that nobody has reported may hold together, in micro-tokens.
func (l Limit) reservedCap(units uint64) int64 {
	return int64(mulDiv(uint64(l.shares()), min(units, Whole), Whole))
}

// wholeTokens is the part of an amount that a share stands for, or nothing where that is less than one token.
func wholeTokens(units uint64, amount int64) int64 {
	part := int64(mulDiv(uint64(amount), min(units, Whole), Whole))
	if part < Micro {
		return 0
	}
	return part
}

// growthDelay is how long freed capacity rests before a share that exists grows by it: burst over rate, with the margin
// for two clocks (docs/guarantees.md, 7), in nanoseconds.
func (l Limit) growthDelay() int64 {
	hi, lo := bits.Mul64(uint64(l.Burst), l.Period)
	if hi >= l.Requests {
		return forever
	}
	t, _ := bits.Div64(hi, lo, l.Requests)
	if t >= forever {
		return forever
	}
	return int64(t) + int64(t)/drift + 1
}
