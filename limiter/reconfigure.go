// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"math"
	"math/bits"
)

// Growth says what becomes of the room that a larger burst adds.
type Growth int

const (
	// AsEarned adds room only: what a bucket holds grows by nothing but the rate. It is the safe choice and the
	// default: a shared limit whose parts are moved about stays within its burst.
	AsEarned Growth = iota

	// AtOnce lets the room be filled by what was earned while there was no room for it: a bucket that had rested for
	// newBurst/rate, as every absent key of a Keyed store has, is full at once. Room that was lost by shrinking is not
	// filled. For edits by people, who expect a limit raised from 10 to 100 to admit 100.
	AtOnce
)

// checkBurst validates a burst.
func checkBurst(burst Tokens) error {
	if burst < 0 || burst > MaxBurst {
		return fmt.Errorf("%w: %v", ErrBurst, burst)
	}
	return nil
}

// startingWith sets what an untouched bucket holds at the anchor: at most the burst.
func (n *numbers) startingWith(have Tokens) *numbers {
	if h := uint64(max(have, 0)); h < n.burst {
		n.floor = n.base - h
	}
	return n
}

// next returns the numbers that follow n at t, which must be within the horizon. They mint nothing: earned is
// continuous at t and from there on grows with the new rate; and no bucket, absent ones included, holds more than
// before.
//
// The floor does the latter for all buckets at once. At t a bucket with mark m held min(burst, earned-m); with the
// floor at earned-min(burst, newBurst) it holds min(burst, newBurst, earned-m), from t on and through every later
// change, since a floor is never lowered.
func (n *numbers) next(t Time, r Rate, burst uint64, g Growth) *numbers {
	t = max(t, n.anchor)
	l, _ := n.at(t)
	_, rest := n.split(t)
	m := *n
	m.generation++
	m.burst = burst
	if burst < n.burst || burst > n.burst && g != AtOnce {
		m.floor = max(n.floor, l.earned-min(n.burst, burst))
	}
	if r != n.rate {
		m.setRate(r)
		m.base = l.earned
		m.anchor = t
		m.carry(n.fraction(rest))
	}
	m.setHorizon()
	return &m
}

// split returns the count of earned tokens at t, not before the anchor, since the anchor and the rest of the division,
// in 1/den.
func (n *numbers) split(t Time) (q, rest uint64) {
	hi, lo := bits.Mul64(uint64(t)-uint64(n.anchor), n.num)
	if hi >= n.den {
		return math.MaxUint64, 0
	}
	return bits.Div64(hi, lo, n.den)
}

// one is the denominator of numbers.spare.
const one uint64 = 1 << 63

// fraction returns the fraction of a millionth that is earned beyond a count, given the rest of the division, as a
// fraction of one.
func (n *numbers) fraction(rest uint64) uint64 {
	if n.num == 0 {
		return n.spare
	}
	f, _ := bits.Div64(rest>>1, rest<<63, n.den)
	return f
}

// carry keeps a fraction that was earned under a former rate, so that a rate which changes every few milliseconds still
// earns: it puts the anchor back by the nanoseconds in which n earns it, rounded down, or keeps it for the next rate if
// n earns nothing.
func (n *numbers) carry(f uint64) {
	n.spare = 0
	if n.num == 0 {
		n.spare = f
		return
	}
	ah, al := bits.Mul64(f, n.den)
	bh, bl := bits.Mul64(one, n.num)
	if s := bitLen(bh, bl) - 63; s > 0 {
		ah, al = shiftRight(ah, al, s)
		_, bl = shiftRight(bh, bl, s)
		bl++
	}
	if ah < bl {
		q, _ := bits.Div64(ah, al, bl)
		n.anchor = n.anchor.Add(-duration(min(q, math.MaxInt64/2)))
	}
}

// rebased returns the numbers that follow n at t, not before the anchor, with earned set back to origin, and by how
// much every mark has to be shifted for it. Marks below the shift belong to buckets that have been full for long and
// become 0.
//
// The new anchor is an instant at which a whole number of millionths had been earned, so that nothing is lost however
// often the marks are shifted. Only a crooked rate (a fraction of numbers near 2^60) has no such instant near enough;
// it loses less than a millionth in some 10^12 tokens.
func (n *numbers) rebased(t Time) (*numbers, uint64) {
	m := *n
	m.anchor, m.base = t, origin
	if n.num <= 1<<58 {
		m.anchor = t.Add(-duration((uint64(t) - uint64(n.anchor)) % n.den))
	}
	q, _ := n.split(m.anchor)
	shift := n.base - origin + q
	if shift < q {
		shift = math.MaxUint64
	}
	m.floor = shifted(n.floor, shift)
	m.shifts++
	m.setHorizon()
	return &m, shift
}

// shifted is a mark after rebasing.
func shifted(m, shift uint64) uint64 { return m - min(m, shift) }
