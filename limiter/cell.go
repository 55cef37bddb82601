// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"sync"
	"sync/atomic"
)

// cell is one mark and the numbers that it is judged by.
type cell struct {
	word atomic.Uint64 // mark, and the held bit
	nums atomic.Pointer[numbers]

	mu sync.Mutex // serialises changes of nums
}

// load returns the numbers in force and what they say at t.
func (c *cell) load(t Time) (*numbers, level) {
	n := c.nums.Load()
	if l, ok := n.at(t); ok {
		return n, l
	}
	return c.loadSlow(t)
}

func (c *cell) loadSlow(t Time) (*numbers, level) {
	for {
		n := c.nums.Load()
		if l, ok := n.from(t); ok {
			return n, l
		}
		c.mu.Lock()
		c.rebaseLocked(t)
		c.mu.Unlock()
	}
}

// commit moves the mark from w to m if the numbers n are in force.
func (c *cell) commit(n *numbers, w, m uint64) bool {
	if !c.word.CompareAndSwap(w, m) {
		return false
	}
	if c.nums.Load() == n {
		return true
	}
	undo(&c.word, m, w)
	return false
}

// change replaces the numbers by those that follow them at t.
func (c *cell) change(t Time, next func(*numbers) *numbers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebaseLocked(t)
	c.nums.Store(next(c.nums.Load()))
}

// rebaseLocked shifts the mark back if t is past the horizon. It owns the word meanwhile. The caller holds mu.
func (c *cell) rebaseLocked(t Time) {
	n := c.nums.Load()
	if _, ok := n.from(t); ok {
		return
	}
	for try := 0; ; try++ {
		w := c.word.Load()
		if w < held && c.word.CompareAndSwap(w, w|held) {
			m, shift := n.rebased(t)
			c.nums.Store(m)
			c.word.Store(shifted(w, shift))
			return
		}
		pause(try)
	}
}
