// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "sync/atomic"

// Reconfigure is ReconfigureAt(Now(), r, burst, AsEarned).
func (k *Keyed) Reconfigure(r Rate, burst Tokens) error {
	return k.ReconfigureAt(Now(), r, burst, AsEarned)
}

// ReconfigureAt puts a rate and a burst in force at t for all keys, as TokenBucket.ReconfigureAt does for one, in the
// time that it takes for one. With AsEarned a key that is absent holds afterwards what it held before, the former
// burst, and earns from there; with AtOnce it is full.
func (k *Keyed) ReconfigureAt(t Time, r Rate, burst Tokens, g Growth) error {
	if err := checkBurst(burst); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rebaseLocked(t)
	k.nums.Store(k.nums.Load().next(t, r, uint64(burst), g))
	return nil
}

// Config returns the rate and the burst in force.
func (k *Keyed) Config() (Rate, Tokens) {
	k.mu.Lock() // not while rebasing
	defer k.mu.Unlock()
	n := k.nums.Load()
	return n.rate, Tokens(n.burst)
}

// Len is LenAt(Now()).
func (k *Keyed) Len() int { return k.LenAt(Now()) }

// sampled is how many groups LenAt looks at.
const sampled = 512

// LenAt returns about how many keys have a bucket that is not full at t: exactly in a store for up to 7,000 keys, else
// scaled up from a sample of some thousand slots.
func (k *Keyed) LenAt(t Time) int {
	_, l := k.load(t)
	step := max(len(k.groups)/sampled, 1)
	looked, used := 0, 0
	for i := 0; i < len(k.groups); i += step {
		looked++
		for j := range k.groups[i].word {
			if k.groups[i].word[j].Load()&^held > l.full {
				used++
			}
		}
	}
	return int(int64(used) * int64(len(k.groups)) / int64(looked))
}

// load returns the numbers in force and what they say at t.
func (k *Keyed) load(t Time) (*numbers, level) {
	for {
		n := k.nums.Load()
		l, ok := n.at(t)
		if !ok {
			l, ok = n.from(t)
		}
		if ok {
			return n, l
		}
		k.mu.Lock()
		k.rebaseLocked(t)
		k.mu.Unlock()
	}
}

// rebaseLocked shifts all marks back if t is past the horizon. The caller holds mu.
//
// Meanwhile no decision is made: the frozen numbers are in force, so whoever loads them waits here for mu, and whoever
// loaded the former ones finds that they have changed and undoes what it did. Slots come first and then what entering a
// slot writes to, since entering owns a slot meanwhile.
func (k *Keyed) rebaseLocked(t Time) {
	n := k.nums.Load()
	if _, ok := n.from(t); ok {
		return
	}
	k.nums.Store(frozen)
	m, shift := n.rebased(t)
	for i := range k.groups {
		for j := range k.groups[i].word {
			shiftWord(&k.groups[i].word[j], shift)
		}
	}
	for i := range k.gone {
		shiftWord(&k.gone[i], shift)
	}
	for i := range k.stripes {
		shiftWord(&k.stripes[i].spill, shift)
	}
	k.nums.Store(m)
}

// shiftWord shifts a mark back once nobody owns it.
func shiftWord(word *atomic.Uint64, shift uint64) {
	for try := 0; ; try++ {
		w := word.Load()
		if w < held && (w == 0 || word.CompareAndSwap(w, shifted(w, shift))) {
			return
		}
		pause(try)
	}
}
