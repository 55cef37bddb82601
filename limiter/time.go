// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "time"

// Time is a reading of a monotonic clock in nanoseconds since an origin of the caller's choice. Every limiter takes the
// time as a parameter (its At methods); the forms without it read Now. All readings given to one limiter must come from
// one clock. A reading older than one that the limiter has seen is harmless: it earns nothing and takes nothing back.
type Time int64

// Add returns t+d, at the ends of the range if it would pass them.
func (t Time) Add(d time.Duration) Time {
	s := t + Time(d)
	switch {
	case d > 0 && s < t:
		return Time(1<<63 - 1)
	case d < 0 && s > t:
		return Time(-1 << 63)
	}
	return s
}

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// start is the origin of Now. Its monotonic part is all that is used, so that steps of the wall clock do not exist
// here.
var start = time.Now()

// nanotime reads the runtime's monotonic clock.
func nanotime() Time { return Time(time.Since(start)) }

// Now reads the process's monotonic clock. It counts from the start of the process, never goes backwards, and stands
// still while the machine is suspended (CLOCK_MONOTONIC on Linux): a limiter then earns too little rather than too
// much. Safe for concurrent use.
func Now() Time { return nanotime() }
