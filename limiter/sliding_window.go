// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"
)

// SlidingWindow grants what keeps the estimate of the last window's count within a limit. It counts in fixed windows
// and takes the count of the window before to have been spread evenly: estimate = before*(part of it that is still
// within the last window) + count. Used by Cloudflare and others for its two counters of memory. It is an estimate:
// where the requests before came late in their window, the last window may hold up to twice the limit. SlidingLog is
// exact.
//
// All methods may be called concurrently; they take a lock for some nanoseconds and allocate nothing.
type SlidingWindow struct {
	mu sync.Mutex
	windows
}

// NewSlidingWindow returns a limiter that grants about limit whole tokens in every window of the given length. It fails
// with ErrWindow for a window that is not positive or a limit above MaxWindowLimit.
func NewSlidingWindow(limit uint64, window time.Duration) (*SlidingWindow, error) {
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	return &SlidingWindow{windows: windows{limit: limit, length: window, start: math.MinInt64}}, nil
}

// Take is TakeAt(Now(), cost).
func (s *SlidingWindow) Take(cost uint64) Decision { return s.TakeAt(Now(), cost) }

// TakeAt grants a cost of whole tokens at t if the estimate, rounded up, stays within the limit.
func (s *SlidingWindow) TakeAt(t Time, cost uint64) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(t)
	used := s.count + s.fading(t)
	left := s.limit - min(used, s.limit)
	d := Decision{Allowed: cost <= left, Limit: Tokens(s.limit) * Token}
	switch {
	case d.Allowed:
		s.count += cost
		left -= cost
	case cost > s.limit:
		d.RetryAfter = Never
	default:
		d.RetryAfter = wait(t, s.when(cost))
	}
	d.Remaining = Tokens(left) * Token
	return d
}

// fading is what of the window before still counts at t, rounded up.
func (s *SlidingWindow) fading(t Time) uint64 {
	gone := max(t-s.start, 0)
	return mulDivUp(s.before, uint64(Time(s.length)-gone), uint64(s.length))
}

// when is the instant from which on cost fits, if nothing else is taken: in this window when enough of the window
// before has faded, or in the next when enough of this one has.
func (s *SlidingWindow) when(cost uint64) Time {
	start, before, room := s.start, s.before, s.limit-cost
	if s.count > room {
		start, before = start.Add(s.length), s.count
	} else {
		room -= s.count
	}
	if before <= room {
		return start
	}
	// before*(length-gone)/length <= room, for the least gone.
	hi, lo := bits.Mul64(room, uint64(s.length))
	left, _ := bits.Div64(hi, lo, before)
	return start.Add(s.length - time.Duration(left))
}

// mulDivUp is a*b/c rounded up; b must not be above c.
func mulDivUp(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c-1, 0)
	q, _ := bits.Div64(hi+carry, lo, c)
	return q
}

// Wait takes cost, waiting until the estimate allows it. Who asks first is not necessarily served first. It fails as
// TokenBucket.Wait does.
func (s *SlidingWindow) Wait(ctx context.Context, cost uint64) error {
	return retry(ctx, func(t Time) Decision { return s.TakeAt(t, cost) })
}

// ReconfigureAt changes limit and window at t. What the window before and this one hold counts on, in the windows of
// the new length. It fails with ErrWindow, changing nothing.
func (s *SlidingWindow) ReconfigureAt(t Time, limit uint64, window time.Duration) error {
	if err := checkWindow(limit, window); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconfigure(t, limit, window)
	return nil
}
