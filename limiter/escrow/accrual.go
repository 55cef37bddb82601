// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "math/bits"

// wholeParts is the whole of a limit's rate where a part of a share can sleep: a share has a thousand parts a unit.
const wholeParts = Whole * 1000

// accrual counts what a part of a limit's rate earns, exactly: remainders are carried from step to step, so nothing is
// lost to rounding however often it is asked, and nothing is gained.
type accrual struct {
	ofPeriod uint64 // of a micro-token of the whole rate, in 1/Period
	ofWhole  uint64 // of a micro-token earned, in 1/wholeParts
}

// add returns what parts of the rate earn in dt nanoseconds, in micro-tokens; at most one burst of the limit.
func (a *accrual) add(l Limit, dt int64, parts uint64) int64 {
	if dt <= 0 {
		return 0
	}
	most := uint64(l.Burst) * Micro
	hi, lo := bits.Mul64(uint64(dt), l.Requests*Micro)
	lo, carry := bits.Add64(lo, a.ofPeriod, 0)
	hi += carry
	full := uint64(1) << 62
	if hi < l.Period {
		full, a.ofPeriod = bits.Div64(hi, lo, l.Period)
		full = min(full, 1<<62)
	}
	hi, lo = bits.Mul64(full, min(parts, wholeParts))
	lo, carry = bits.Add64(lo, a.ofWhole, 0)
	hi += carry
	earned, rest := bits.Div64(hi, lo, wholeParts)
	a.ofWhole = rest
	return int64(min(earned, most))
}

// faster forgets the fraction that was earned at a lower part of the rate: it must not be paid out at a higher one.
func (a *accrual) faster() { a.ofPeriod = 0 }

// restart forgets all fractions, for another rate.
func (a *accrual) restart() { *a = accrual{} }
