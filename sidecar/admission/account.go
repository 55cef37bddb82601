// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
)

// account is where a limit's tokens are in this process. It outlives snapshots for as long as they hold the limit. Exactly one
// of bucket, keyed, flight and lent is there.
type account struct {
	bucket *limiter.TokenBucket // of a limit without a key
	keyed  *limiter.Keyed       // of a limit with a key
	flight *flight              // of a limit of concurrency
	lent   *adaptive            // of a limit whose tokens are lent

	queueing queueing
	instead  instead // the same by numbers that clients asked for

	counters // shared with the accounts of the same limit before and after
}

// counters say what became of the requests that a limit counts.
type counters struct {
	allowed, denied *counter
	undecided       *counter // another limit denied them, or their client left while they waited
}

func newCounters() counters { return counters{new(counter), new(counter), new(counter)} }

// counter counts requests and what they cost. It is alone in its cache line: the two of a hot limit are written by every core.
type counter struct {
	cost  atomic.Uint64
	extra atomic.Uint64 // of the cost, what is above one for each request; seldom written
	_     [48]byte
}

func (c *counter) add(cost uint64) {
	c.cost.Add(cost)
	if cost != 1 {
		c.extra.Add(cost - 1)
	}
}

// correct changes the cost of a request that has been counted.
func (c *counter) correct(from, to uint64) {
	c.cost.Add(to - from) // wraps, and so may fall
	c.extra.Add(to - from)
}

func (c *counter) requests() uint64 { return c.cost.Load() - c.extra.Load() }

// offered is how many requests have asked for the limit, those that wait included.
func (a *account) offered() uint64 {
	waiting, _ := a.waits()
	return a.allowed.requests() + a.denied.requests() + a.undecided.requests() + waiting
}

// waits is how many requests wait for the limit's tokens now, and how many ever did.
func (a *account) waits() (now, ever uint64) {
	if a.lent == nil {
		return uint64(max(a.queueing.held.Load(), 0)), a.queueing.ever.Load()
	}
	a.lent.mu.Lock()
	defer a.lent.mu.Unlock()
	a.lent.all(func(t *tab) { now += uint64(len(t.queue)) })
	return now, a.lent.held.Load()
}

func (a *account) take(now limiter.Time, m *match) limiter.Decision {
	if d, ok := a.behind(now, m); ok {
		return d
	}
	switch {
	case a.lent != nil:
		return a.lent.take(now, m)
	case a.flight != nil:
		return a.flight.acquire(m.hash, m.cost)
	case a.keyed != nil:
		return a.keyed.TakeHashAt(now, m.hash, m.cost)
	}
	return a.bucket.TakeAt(now, m.cost)
}

// charge is the account's part of a decision over several; of bucket and keyed only.
func (a *account) charge(hash, cost uint64) limiter.Charge {
	if a.keyed != nil {
		return a.keyed.Charge(hash, cost)
	}
	return a.bucket.Charge(cost)
}

// settle corrects what was taken.
func (a *account) settle(now limiter.Time, hash, taken, actual uint64, debt limiter.Tokens) {
	switch {
	case a.lent != nil:
		a.lent.settle(now, hash, taken, actual)
	case a.keyed != nil:
		a.keyed.SettleHashAt(now, hash, taken, actual, debt)
	case a.bucket != nil:
		a.bucket.SettleAt(now, taken, actual, debt)
	}
}

func (a *account) reconfigure(now limiter.Time, rate limiter.Rate, burst limiter.Tokens) error {
	switch {
	case a.lent != nil:
		return nil // its numbers come with orders
	case a.flight != nil:
		a.flight.setLimit(burst.Whole())
		return nil
	case a.keyed != nil:
		return a.keyed.ReconfigureAt(now, rate, burst, limiter.AsEarned)
	}
	return a.bucket.ReconfigureAt(now, rate, burst, limiter.AsEarned)
}
