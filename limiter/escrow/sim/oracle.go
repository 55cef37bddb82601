// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

// Oracle checks what is admitted against the law, for every interval:
//
//	admitted(W) <= B + R (1 + rho) W,   rho = 0.001
//
// in one pass: no interval can be worse than one that begins and ends at an admission, and the most that was admitted in
// excess of the rate, over all intervals that end now, is what it was at the last admission, less what the rate has
// allowed since, but not less than what begins now. Arithmetic is exact, in units of 1/(1000 * period) tokens.
//
// Where numbers are edited, the larger hold for intervals that begin before the old ones are out of use.
type Oracle struct {
	unit     uint64 // one token
	requests uint64 // per period, the larger of those in use
	last     int64
	began    []tracker // one for each time from which other numbers hold
	latest   int64     // largest burst in use
	worst    float64
	broken   string
}

// tracker looks at the intervals that begin after some time.
type tracker struct {
	excess, burst uint64
	from          int64
}

// NewOracle returns the oracle of a limit that is in force from time 0 on.
func NewOracle(l escrow.Limit) *Oracle {
	o := &Oracle{unit: l.Period * 1000}
	if hi, lo := bits.Mul64(o.unit, uint64(l.Burst)*16); hi > 0 || lo>>63 > 0 {
		panic("sim: the limit is too large for the oracle's units")
	}
	o.Settled(l)
	return o
}

// Edited says that a new limit may be in use beside the old ones. The period stays the same.
func (o *Oracle) Edited(l escrow.Limit, now int64) {
	o.pass(now)
	o.requests = max(o.requests, l.Requests)
	o.latest = max(o.latest, l.Burst)
	for i := range o.began {
		o.began[i].burst = max(o.began[i].burst, uint64(o.latest)*o.unit)
	}
}

// Settled says that from now on the limit is the only one in use.
func (o *Oracle) Settled(l escrow.Limit) {
	o.requests, o.latest = l.Requests, l.Burst
	o.began = append(o.began, tracker{burst: uint64(l.Burst) * o.unit, from: o.last})
}

// SettledAt is Settled at a time.
func (o *Oracle) SettledAt(l escrow.Limit, now int64) {
	o.pass(now)
	o.Settled(l)
}

// pass takes off what the rate has allowed since the last time.
func (o *Oracle) pass(now int64) {
	hi, allowed := bits.Mul64(uint64(now-o.last), o.requests*1001)
	for i := range o.began {
		t := &o.began[i]
		if hi > 0 || allowed >= t.excess {
			t.excess, t.from = 0, now
		} else {
			t.excess -= allowed
		}
	}
	o.last = now
}

// Admit judges an admission. Times do not decrease.
func (o *Oracle) Admit(cost, now int64) {
	o.pass(now)
	for i := range o.began {
		t := &o.began[i]
		t.excess += uint64(cost) * o.unit
		o.worst = max(o.worst, float64(t.excess)/float64(t.burst))
		if t.excess > t.burst && o.broken == "" {
			o.broken = fmt.Sprintf("in the %s up to %s, %.3f tokens were admitted beyond what the rate allows; the burst is %d",
				time.Duration(now-t.from), time.Duration(now), float64(t.excess)/float64(o.unit), t.burst/o.unit)
		}
	}
}

// Broken describes the first interval in which the law was broken, or is empty.
func (o *Oracle) Broken() string { return o.broken }

// Tightest is the largest part of the burst that was in use at any time, 1 at the most while the law holds.
func (o *Oracle) Tightest() float64 { return o.worst }
