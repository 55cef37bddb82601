// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"math"
	"sync"
	"time"
)

// FixedWindow grants at most a limit in each window of fixed length: the clock's seconds, minutes, or whatever the
// length divides its time into. It is the cheapest to explain, and across the edge of two windows lets twice the limit
// pass; a TokenBucket does not.
//
// All methods may be called concurrently; they take a lock for some nanoseconds and allocate nothing.
type FixedWindow struct {
	mu sync.Mutex
	windows
}

// NewFixedWindow returns a limiter that grants limit whole tokens in each window. It fails with ErrWindow for a window
// that is not positive or a limit above MaxWindowLimit.
func NewFixedWindow(limit uint64, window time.Duration) (*FixedWindow, error) {
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	return &FixedWindow{windows: windows{limit: limit, length: window, start: math.MinInt64}}, nil
}

// Take is TakeAt(Now(), cost).
func (f *FixedWindow) Take(cost uint64) Decision { return f.TakeAt(Now(), cost) }

// TakeAt grants a cost of whole tokens at t if the window has as much left. RetryAfter is the time to the next window.
func (f *FixedWindow) TakeAt(t Time, cost uint64) Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(t)
	left := f.limit - min(f.count, f.limit)
	d := Decision{Allowed: cost <= left, Limit: Tokens(f.limit) * Token}
	switch {
	case d.Allowed:
		f.count += cost
		left -= cost
	case cost > f.limit:
		d.RetryAfter = Never
	default:
		d.RetryAfter = wait(t, f.start.Add(f.length))
	}
	d.Remaining = Tokens(left) * Token
	return d
}

// Wait takes cost, waiting for a window that has it. Who asks first is not necessarily served first. It fails as
// TokenBucket.Wait does.
func (f *FixedWindow) Wait(ctx context.Context, cost uint64) error {
	return retry(ctx, func(t Time) Decision { return f.TakeAt(t, cost) })
}

// ReconfigureAt changes limit and window at t. What was granted in the window of t counts on, in the window that t is
// in by the new length. It fails with ErrWindow, changing nothing.
func (f *FixedWindow) ReconfigureAt(t Time, limit uint64, window time.Duration) error {
	if err := checkWindow(limit, window); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconfigure(t, limit, window)
	return nil
}
