// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
)

// flight counts the requests that are under way, for each key of a limit of concurrency. It remembers a key only while one
// of its requests is under way, so that its memory is bounded by them. All methods may be called concurrently.
type flight struct {
	limit  atomic.Uint64
	shards [16]flightShard
}

type flightShard struct {
	mu    sync.Mutex
	inUse map[uint64]uint64 // by the hash of the key; guarded by mu
	_     [40]byte
}

func newFlight(limit uint64) *flight {
	f := &flight{}
	f.limit.Store(limit)
	for i := range f.shards {
		f.shards[i].inUse = map[uint64]uint64{}
	}
	return f
}

// setLimit changes the limit. What is under way stays, also if it is more than the new limit; then nothing is admitted until
// enough has ended.
func (f *flight) setLimit(limit uint64) { f.limit.Store(limit) }

func (f *flight) shard(hash uint64) *flightShard { return &f.shards[hash%uint64(len(f.shards))] }

// acquire admits cost requests of a key, or none. RetryAfter is 0 in a denial: nobody knows when one of them ends.
func (f *flight) acquire(hash, cost uint64) limiter.Decision {
	s, limit := f.shard(hash), f.limit.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.inUse[hash]
	d := limiter.Decision{Limit: limiter.Tokens(limit) * limiter.Token}
	switch {
	case cost > limit:
		d.RetryAfter = limiter.Never
	case used+cost <= limit:
		d.Allowed = true
		used += cost
		s.inUse[hash] = used
	}
	d.Remaining = limiter.Tokens(limit-min(used, limit)) * limiter.Token
	return d
}

// release ends requests that were admitted.
func (f *flight) release(hash, cost uint64) {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if used := s.inUse[hash]; used > cost {
		s.inUse[hash] = used - cost
		return
	}
	delete(s.inUse, hash)
}

// total is how many requests are under way.
func (f *flight) total() uint64 {
	var sum uint64
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		for _, n := range s.inUse {
			sum += n
		}
		s.mu.Unlock()
	}
	return sum
}

// keys is how many keys have requests under way.
func (f *flight) keys() int {
	sum := 0
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		sum += len(s.inUse)
		s.mu.Unlock()
	}
	return sum
}
