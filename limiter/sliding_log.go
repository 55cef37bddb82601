// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// MaxLogLimit is the highest limit of a SlidingLog, which needs 16 bytes for each.
const MaxLogLimit = 1 << 26

// SlidingLog grants at most a limit in every window of a length, exactly: "100 in the last 60 s" is never 101, wherever
// the window is laid. A cost granted at an instant counts from then until just before the same instant one window
// later. It remembers every grant of the last window, in memory that is allocated at once: 16 bytes for each token of
// the limit.
//
// All methods may be called concurrently; they take a lock for some nanoseconds and allocate nothing.
type SlidingLog struct {
	mu     sync.Mutex
	limit  uint64
	length time.Duration
	ring   []logged // of at least limit entries
	head   int      // oldest
	size   int
	count  uint64 // sum of the costs in the ring
	last   Time   // the clock has been there
}

type logged struct {
	at   Time
	cost uint64
}

// NewSlidingLog returns a limiter that grants limit whole tokens in every window of the given length. It fails with
// ErrWindow for a window that is not positive or a limit above MaxLogLimit.
func NewSlidingLog(limit uint64, window time.Duration) (*SlidingLog, error) {
	if err := checkLog(limit, window); err != nil {
		return nil, err
	}
	return &SlidingLog{limit: limit, length: window, ring: make([]logged, max(limit, 1)), last: -1 << 63}, nil
}

func checkLog(limit uint64, window time.Duration) error {
	if limit > MaxLogLimit {
		return fmt.Errorf("%w: %d per %v", ErrWindow, limit, window)
	}
	return checkWindow(limit, window)
}

// Take is TakeAt(Now(), cost).
func (s *SlidingLog) Take(cost uint64) Decision { return s.TakeAt(Now(), cost) }

// TakeAt grants a cost of whole tokens at t if the window that ends at t has as much left. RetryAfter is exact.
func (s *SlidingLog) TakeAt(t Time, cost uint64) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := max(t, s.last)
	s.last = now
	s.forget(now)
	left := s.limit - min(s.count, s.limit)
	d := Decision{Allowed: cost <= left, Limit: Tokens(s.limit) * Token}
	switch {
	case d.Allowed:
		s.add(logged{now, cost})
		left -= cost
	case cost > s.limit:
		d.RetryAfter = Never
	default:
		d.RetryAfter = wait(t, s.when(cost))
	}
	d.Remaining = Tokens(left) * Token
	return d
}

// forget drops what is no longer in the window that ends at t.
func (s *SlidingLog) forget(t Time) {
	for s.size > 0 && s.ring[s.head].at.Add(s.length) <= t {
		s.count -= s.ring[s.head].cost
		s.head = (s.head + 1) % len(s.ring)
		s.size--
	}
}

// add appends a grant. Every entry costs at least one token, so that limit entries suffice.
func (s *SlidingLog) add(e logged) {
	if e.cost == 0 {
		return
	}
	s.ring[(s.head+s.size)%len(s.ring)] = e
	s.size++
	s.count += e.cost
}

// when is the instant at which so many of the oldest grants have left the window that cost fits.
func (s *SlidingLog) when(cost uint64) Time {
	count, at := s.count, s.last
	for i := 0; i < s.size && count+cost > s.limit; i++ {
		e := s.ring[(s.head+i)%len(s.ring)]
		count -= e.cost
		at = e.at.Add(s.length)
	}
	return at
}

// Wait takes cost, waiting until the window has it. Who asks first is not necessarily served first. It fails as
// TokenBucket.Wait does.
func (s *SlidingLog) Wait(ctx context.Context, cost uint64) error {
	return retry(ctx, func(t Time) Decision { return s.TakeAt(t, cost) })
}

// ReconfigureAt changes limit and window at t. Grants that are remembered count on. A longer window cannot know what
// had left the shorter one. It fails with ErrWindow, changing nothing, and allocates if the limit grows.
func (s *SlidingLog) ReconfigureAt(t Time, limit uint64, window time.Duration) error {
	if err := checkLog(limit, window); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(t, s.last)
	s.forget(s.last)
	s.limit, s.length = limit, window
	if limit <= uint64(len(s.ring)) {
		return nil
	}
	ring := make([]logged, limit)
	for i := range s.size {
		ring[i] = s.ring[(s.head+i)%len(s.ring)]
	}
	s.ring, s.head = ring, 0
	return nil
}
