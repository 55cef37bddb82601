// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// FastNow reads the process's monotonic clock like Now, from the processor's cycle counter where that can be trusted:
// on amd64 under Linux, if the processor counts at a constant rate in all states and the kernel itself keeps time by
// it. It costs a third of Now there; elsewhere, and for the first hundredth of a second, it is Now. ClockSource tells
// which is in use.
//
// The counter is measured against Now anew every tenth of a second, so the two agree to within some microseconds, or 50
// while the kernel is slewing its clock as fast as it may; by as much it may also step back. If the two ever run apart
// by more than a part in a thousand, as after a suspend or a move to another machine, FastNow is Now from then on. In a
// testing/synctest bubble it does not follow the bubble's clock; Now does.
func FastNow() Time {
	if c := cycles.Load(); c != nil {
		if t, ok := c.at(readCycles()); ok {
			return t
		}
	}
	return measure()
}

// ClockSource tells what FastNow reads: "tsc" or "monotonic".
func ClockSource() string {
	FastNow()
	if cycles.Load() != nil {
		return "tsc"
	}
	return "monotonic"
}

// counted is how time is told from the cycle counter for a while after an instant at which both were read.
type counted struct {
	count, span uint64 // count at the instant; how many cycles it holds for
	time        Time
	perCycle    uint64 // nanoseconds in 1/2^64
}

const (
	firstSpan = 10 * time.Millisecond
	laterSpan = 100 * time.Millisecond
)

func (c *counted) at(count uint64) (Time, bool) {
	d := count - c.count
	ns, _ := bits.Mul64(d, c.perCycle)
	return c.time + Time(ns), d <= c.span
}

// next measures the counter between two instants, the first of which is c, and returns how to tell time from the second
// on. It fails if the counter cannot be trusted: it stood still, is slower than a nanosecond, or does not run at the
// rate that it was measured to have before.
func (c *counted) next(count uint64, t Time) (*counted, bool) {
	d, ns := count-c.count, uint64(t-c.time)
	if t <= c.time || ns >= d {
		return nil, false
	}
	rate, _ := bits.Div64(ns, 0, d)
	if off := max(rate, c.perCycle) - min(rate, c.perCycle); c.perCycle != 0 && off > c.perCycle/1000 {
		return nil, false
	}
	if rate <= uint64(laterSpan) {
		return nil, false
	}
	span, _ := bits.Div64(uint64(laterSpan), 0, rate)
	return &counted{count: count, span: span, time: t, perCycle: rate}, true
}

var (
	cycles    atomic.Pointer[counted] // nil as long as Now is in use
	beginning atomic.Pointer[counted] // where the first measurement began
	measuring atomic.Bool             // held while the two above change
	distrust  atomic.Bool             // for good
)

// measure reads Now, and the counter with it when that is due.
func measure() Time {
	if distrust.Load() || !measuring.CompareAndSwap(false, true) {
		return nanotime()
	}
	defer measuring.Store(false)
	from := cycles.Load()
	if from == nil {
		from = beginning.Load()
	}
	count, t := readBoth()
	switch {
	case from == nil:
		beginning.Store(&counted{count: count, time: t})
		distrust.Store(!trustCycles())
	case count-from.count <= from.span, t-from.time < Time(firstSpan):
		// Measured by another goroutine meanwhile, or not long enough to tell the rate.
	default:
		next, ok := from.next(count, t)
		cycles.Store(next)
		distrust.Store(!ok)
	}
	return t
}

// readBoth reads the counter and the clock as close together as a few attempts give.
func readBoth() (count uint64, t Time) {
	best := ^uint64(0)
	for range 4 {
		before := readCycles()
		now := nanotime()
		if d := readCycles() - before; d < best {
			best, count, t = d, before+d/2, now
		}
	}
	return count, t
}
