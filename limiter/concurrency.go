// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"container/list"
	"context"
	"sync"
)

// Concurrency limits how much is in flight at once. What is acquired must be released; time plays no part.
//
// All methods may be called concurrently; Acquire and Release take a lock for some nanoseconds and allocate nothing.
type Concurrency struct {
	mu      sync.Mutex
	limit   uint64
	held    uint64
	waiters list.List // of waiter, first come first
}

type waiter struct {
	cost  uint64
	ready chan error // of one: how the waiting ended
}

// NewConcurrency returns a limiter that lets costs of up to limit be in flight. It fails with ErrWindow for a limit
// above MaxWindowLimit.
func NewConcurrency(limit uint64) (*Concurrency, error) {
	if err := checkWindow(limit, 1); err != nil {
		return nil, err
	}
	return &Concurrency{limit: limit}, nil
}

// Acquire takes cost if it is free and nobody waits for it. Remaining is what is free then. RetryAfter is Never if cost
// is above the limit; else it is 0 also for a refusal, as nobody knows when something is released.
func (c *Concurrency) Acquire(cost uint64) Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := c.freeLocked()
	d := Decision{Allowed: cost <= free && c.waiters.Len() == 0, Limit: Tokens(c.limit) * Token}
	switch {
	case d.Allowed:
		c.held += cost
		free -= cost
	case cost > c.limit:
		d.RetryAfter = Never
	}
	d.Remaining = Tokens(free) * Token
	return d
}

// Release gives back a cost that was acquired, exactly once. Giving back more than is in flight leaves nothing in
// flight.
func (c *Concurrency) Release(cost uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= min(cost, c.held)
	c.wakeLocked()
}

// Wait acquires cost, waiting until it is free. Who came first is served first, so a large cost is not starved by small
// ones. It fails with ErrLimit if cost is above the limit, and with the context's error if that ends first; nothing is
// acquired then.
func (c *Concurrency) Wait(ctx context.Context, cost uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch d := c.Acquire(cost); {
	case d.Allowed:
		return nil
	case d.RetryAfter == Never:
		return ErrLimit
	}
	c.mu.Lock()
	w := waiter{cost, make(chan error, 1)}
	place := c.waiters.PushBack(w)
	c.wakeLocked() // what was released since
	c.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case err := <-w.ready: // at the same moment
		if err == nil {
			c.held -= min(cost, c.held)
		}
	default:
		c.waiters.Remove(place)
	}
	c.wakeLocked()
	return ctx.Err()
}

// InFlight returns what is acquired and not yet released.
func (c *Concurrency) InFlight() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// SetLimit changes the limit. What is in flight stays, also if it is more than the new limit: nothing is acquired until
// enough was released. A waiter whose cost is above the new limit fails with ErrLimit when its turn comes. It fails
// with ErrWindow, changing nothing.
func (c *Concurrency) SetLimit(limit uint64) error {
	if err := checkWindow(limit, 1); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	c.wakeLocked()
	return nil
}

func (c *Concurrency) freeLocked() uint64 { return c.limit - min(c.held, c.limit) }

// wakeLocked serves those that wait, as far as there is something free. The caller holds mu.
func (c *Concurrency) wakeLocked() {
	for e := c.waiters.Front(); e != nil; e = c.waiters.Front() {
		w := e.Value.(waiter)
		switch {
		case w.cost > c.limit:
			w.ready <- ErrLimit
		case w.cost > c.freeLocked():
			return
		default:
			c.held += w.cost
			w.ready <- nil
		}
		c.waiters.Remove(e)
	}
}
