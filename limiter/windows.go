// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"time"
)

// MaxWindowLimit is the highest limit of a window, in whole tokens.
const MaxWindowLimit = uint64(MaxBurst / Token)

func checkWindow(limit uint64, window time.Duration) error {
	if window <= 0 || limit > MaxWindowLimit {
		return fmt.Errorf("%w: %d per %v", ErrWindow, limit, window)
	}
	return nil
}

// windows divides time into windows of a length, from the origin of the clock on.
type windows struct {
	limit  uint64
	length time.Duration
	start  Time // of the current window; the clock has been there
	count  uint64
	before uint64 // count of the window before
}

// startOf returns the start of the window that t is in.
func startOf(t Time, length time.Duration) Time {
	d := Time(length)
	r := t % d
	if r < 0 {
		r += d
	}
	return t - r
}

// advance moves on to the window of t, if that is later than the current one.
func (w *windows) advance(t Time) {
	start := startOf(t, w.length)
	if start <= w.start {
		return
	}
	if w.start.Add(w.length) == start {
		w.before = w.count
	} else {
		w.before = 0
	}
	w.start, w.count = start, 0
}

// wait is how long from t to u.
func wait(t, u Time) time.Duration {
	if d := u.Sub(t); d > 0 || u <= t {
		return max(d, 0)
	}
	return Never
}

func (w *windows) reconfigure(t Time, limit uint64, length time.Duration) {
	w.advance(t)
	w.limit = limit
	if length != w.length {
		w.length, w.start = length, startOf(max(t, w.start), length)
	}
}
