// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math"
	"math/bits"
	"time"
)

// Marks. A limiter counts everything it ever earned (in millionths of a token) and keeps, for each bucket, a mark on
// that count:
//
//	balance(t) = min(burst, earned(t) - mark)
//
// Taking a cost moves the mark up by it. The only rounding is that of earned, down to a millionth; it is computed from
// the instant since which the rate is in force, so it does not add up. The mark's word carries one more bit, held,
// while All owns it.
const (
	held   uint64 = 1 << 63 // bit of a word: an All decision owns it; others wait, for nanoseconds
	origin uint64 = 1 << 60 // earned starts here, so that a mark of a full bucket is never below 0
	limit  uint64 = 3 << 60 // earned never passes it: the marks are shifted back to origin before (see rebase)
)

// numbers are a rate and a burst in force since an instant. They are immutable: reconfiguring replaces them.
type numbers struct {
	anchor  Time   // earned(anchor) == base
	base    uint64 // in [origin, limit]
	horizon uint64 // nanoseconds after anchor up to which earned stays below limit
	burst   uint64
	spare   uint64 // fraction of a millionth, in 1/one, earned before a rate of nothing
	floor   uint64 // every mark counts as at least this one; what growing and shrinking and an empty start leave behind

	// earned(anchor+d) = base + floor(d*num/den). magic is floor(num/den * 2^(64+post-pre)), normalised to have its top
	// bit set.
	num, den  uint64
	magic     uint64
	pre, post uint8

	rate   Rate
	shifts uint64 // how often the marks have been shifted back
	room   uint64 // of a LeakyBucket, in millionths, or of a stripe, in tokens

	generation uint32 // one more for each reconfiguration
}

// newNumbers returns the numbers of a full bucket that starts earning at t. The rate and burst must have been
// validated.
func newNumbers(t Time, r Rate, burst uint64) *numbers {
	n := &numbers{anchor: t, base: origin, burst: burst}
	n.setRate(r)
	n.setHorizon()
	return n
}

// setRate computes the fraction of millionths per nanosecond and its reciprocal-free approximation.
func (n *numbers) setRate(r Rate) {
	n.rate = r
	if r.tokens == 0 {
		n.num, n.den, n.magic, n.pre, n.post = 0, 1, 0, 0, 0
		return
	}
	g := gcd(uint64(Token), r.period)
	n.num, n.den = r.tokens*(uint64(Token)/g), r.period/g
	g = gcd(n.num, n.den)
	n.num, n.den = n.num/g, n.den/g
	// magic = floor(num * 2^s / den) with 2^63 <= magic < 2^64. First scale both to 64 bits, then decide the last bit.
	num, den := n.num, n.den
	ln, ld := bits.LeadingZeros64(num), bits.LeadingZeros64(den)
	num, den = num<<ln, den<<ld
	s := 63 + ln - ld
	hi, lo := num>>1, num<<63 // num * 2^63
	if num < den {
		hi, lo = num, 0 // num * 2^64
		s++
	}
	n.magic, _ = bits.Div64(hi, lo, den)
	n.pre, n.post = uint8(max(64-s, 0)), uint8(max(s-64, 0))
}

// setHorizon computes how long the numbers hold before the marks must be shifted back.
func (n *numbers) setHorizon() {
	n.horizon = math.MaxInt64
	if n.num == 0 {
		return
	}
	hi, lo := bits.Mul64(limit-n.base, n.den)
	if hi < n.num {
		q, _ := bits.Div64(hi, lo, n.num)
		n.horizon = min(q, n.horizon)
	}
}

// frozen are numbers under which no decision can be made: whoever loads them waits for the next ones.
var frozen = &numbers{anchor: math.MinInt64, den: 1}

// level is what numbers say at one instant.
type level struct {
	earned uint64 // rounded down
	full   uint64 // the mark of a full bucket, and what an absent key's counts as
}

// at computes the level at t, exactly. It fails if t is before the anchor or past the horizon.
//
// The quotient is estimated by one multiplication with magic. magic is less than one below num/den*2^s, relatively less
// than 2^-63, and the quotient is below 2^62, so the estimate is the true quotient or one less; the remainder, below
// 2*den < 2^63, tells which in 64 bits. Where num/den is whole, so is magic, and the estimate is the quotient.
func (n *numbers) at(t Time) (level, bool) {
	d := uint64(t) - uint64(n.anchor)
	q, _ := bits.Mul64(d<<(n.pre&63), n.magic)
	q >>= n.post & 63
	if n.den != 1 && d*n.num-q*n.den >= n.den {
		q++
	}
	q += n.base
	return level{q, max(q-n.burst, n.floor)}, d <= n.horizon
}

// from is at for an instant that is not past the horizon: one before the anchor counts as the anchor.
func (n *numbers) from(t Time) (level, bool) { return n.at(max(t, n.anchor)) }

// take returns the mark after taking c from a bucket with mark m, and whether it can be taken.
func (l level) take(m, c uint64) (uint64, bool) {
	m = max(m, l.full) + c
	return m, m <= l.earned
}

// balance is what a bucket with mark m can spend.
func (l level) balance(m uint64) Tokens {
	m = max(m, l.full)
	if m >= l.earned {
		return 0
	}
	return Tokens(l.earned - m)
}

// granted is the decision that left a bucket at mark m.
func (n *numbers) granted(l level, m uint64) Decision {
	return Decision{Allowed: true, Remaining: l.balance(m), Limit: Tokens(n.burst)}
}

// denied is the decision that refused c at t to a bucket with mark m.
func (n *numbers) denied(t Time, l level, m, c uint64) Decision {
	return Decision{Remaining: l.balance(m), RetryAfter: n.wait(t, l, m, c), Limit: Tokens(n.burst)}
}

// peek is the decision that taking c at t from a bucket with mark m would be, with what remains before it.
func (n *numbers) peek(t Time, l level, m, c uint64) Decision {
	if _, ok := l.take(m, c); ok || c == 0 {
		return n.granted(l, m)
	}
	return n.denied(t, l, m, c)
}

// wait is how long after t a bucket with mark m holds c.
func (n *numbers) wait(t Time, l level, m, c uint64) time.Duration {
	if c > n.burst {
		return Never
	}
	return n.until(t, max(m, l.full)+c)
}

// until is how long after t the count of earned tokens reaches e.
func (n *numbers) until(t Time, e uint64) time.Duration {
	d, passed := n.nanos(max(e, n.base)-n.base), int64(t-n.anchor)
	if d >= math.MaxInt64 {
		return Never
	}
	if passed >= 0 {
		return time.Duration(min(d-min(d, uint64(passed)), math.MaxInt64))
	}
	return time.Duration(min(d, math.MaxInt64-uint64(-passed)) + uint64(-passed))
}

// nanos is how long earning k takes, rounded up.
func (n *numbers) nanos(k uint64) uint64 {
	if k == 0 {
		return 0
	}
	if n.num == 0 {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(k, n.den)
	lo, carry := bits.Add64(lo, n.num-1, 0)
	hi += carry
	if hi >= n.num {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, n.num)
	return q
}
