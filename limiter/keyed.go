// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// MaxKeys is the largest number of keys that a Keyed store can be made for.
const MaxKeys = 1 << 30

// Keyed is one token bucket for each key, all with the same rate and burst, in a fixed amount of memory: 18.4 bytes for
// each of the keys that it is made for, allocated at once, without pointers for the garbage collector to follow.
//
// A full bucket needs no memory, so only buckets that are not full count, and a slot is free again as soon as its
// bucket is full: nothing has to be swept, and forgetting a bucket changes no decision. When all 16 slots that a key
// may use are taken by buckets that are not full, the key is served from a bucket that it shares with other such keys
// (and finds itself charged for it when it gets a slot later). The store thus errs on the strict side, never on the
// other, and Strict counts it.
//
// Keys are known by a 64-bit hash. Two keys with the same hash share a bucket, which too can only make it stricter (one
// pair in 1.8e19).
//
// Each bucket grants what a TokenBucket does, with the same exactness and the same law, and reconfiguring takes the
// same time for a million keys as for one. All methods may be called concurrently; a decision takes no lock unless its
// key is new, and allocates nothing.
type Keyed struct {
	table
	nums    atomic.Pointer[numbers]
	stripes []stripe
	seed    maphash.Seed
	strict  atomic.Uint64

	mu sync.Mutex // serialises changes of nums
}

// NewKeyed returns a store for the given number of keys, all of them full, that earn from now on. See NewKeyedAt.
func NewKeyed(r Rate, burst Tokens, keys int) (*Keyed, error) {
	return NewKeyedAt(Now(), r, burst, Full, keys)
}

// NewKeyedAt returns a store for the given number of keys with buckets that are not full, each of which holds the given
// level at t (Full, 0 for empty, or any amount; at most the burst). It fails with ErrBurst or ErrKeys.
func NewKeyedAt(t Time, r Rate, burst, level Tokens, keys int) (*Keyed, error) {
	if err := checkBurst(burst); err != nil {
		return nil, err
	}
	if keys < 1 || keys > MaxKeys {
		return nil, fmt.Errorf("%w: %d", ErrKeys, keys)
	}
	k := &Keyed{table: newTable(keys), stripes: newStripes(keys), seed: maphash.MakeSeed()}
	k.nums.Store(newNumbers(t, r, uint64(burst)).startingWith(level))
	return k, nil
}

// Hash returns the hash of a key for this store. It differs from process to process, so that nobody can choose keys
// that collide.
func (k *Keyed) Hash(key string) uint64 { return maphash.String(k.seed, key) }

// HashBytes returns the hash of a key, the same as that of the string.
func (k *Keyed) HashBytes(key []byte) uint64 { return maphash.Bytes(k.seed, key) }

// Allow is AllowAt(Now(), key, 1).
func (k *Keyed) Allow(key string) bool { return k.AllowAt(Now(), key, 1) }

// AllowAt reports whether cost whole tokens can be taken at t from the key's bucket, and takes them if so. A cost of 0
// is always granted.
func (k *Keyed) AllowAt(t Time, key string, cost uint64) bool {
	_, _, _, ok := k.take(t, k.Hash(key), price(cost))
	return ok
}

// Take is TakeAt(Now(), key, cost).
func (k *Keyed) Take(key string, cost uint64) Decision { return k.TakeAt(Now(), key, cost) }

// TakeAt decides as AllowAt does and tells what remains, or how long to wait.
func (k *Keyed) TakeAt(t Time, key string, cost uint64) Decision {
	return k.TakeHashAt(t, k.Hash(key), cost)
}

// TakeHashAt is TakeAt for a key that is given by its hash, of this store or any other good one: a key's hash must
// always be the same.
func (k *Keyed) TakeHashAt(t Time, hash, cost uint64) Decision {
	c := price(cost)
	n, l, m, ok := k.take(t, hash, c)
	if ok {
		return n.granted(l, m)
	}
	return n.denied(t, l, m, c)
}

// take takes c from the bucket of a key if it can. It returns the mark afterwards, which is the mark found if it
// cannot, and what it was judged by.
//
// A swap counts only if afterwards the numbers are still the same, for the reason given at TokenBucket.take, and so is
// the print: else the slot may have been given to another key between finding it and the swap, and the swap is undone.
func (k *Keyed) take(t Time, hash, c uint64) (*numbers, level, uint64, bool) {
	p := k.place(hash)
	for try := 0; ; try++ {
		n, l := k.load(t)
		g, i := k.find(p)
		if g == nil {
			e, out := k.enter(n, l, p, c, nil)
			if out == busy {
				pause(try)
				continue
			}
			return n, l, e.settle(), out == ready
		}
		w := g.word[i].Load()
		if w >= held {
			pause(try)
			continue
		}
		if c == 0 {
			return n, l, w, true
		}
		m, ok := l.take(w, c)
		if !ok {
			if g.print[i].Load() != p.print {
				continue
			}
			return n, l, w, false
		}
		if k.commit(n, g, i, p.print, w, m) {
			return n, l, m, true
		}
	}
}

// commit moves the mark of a slot from w to m if the slot is still that of the print and the numbers n are in force.
func (k *Keyed) commit(n *numbers, g *group, i int, print, w, m uint64) bool {
	if !g.word[i].CompareAndSwap(w, m) {
		return false
	}
	if g.print[i].Load() == print && k.nums.Load() == n {
		return true
	}
	undo(&g.word[i], m, w)
	return false
}

// PeekAt returns what TakeAt would decide at t, but takes nothing: Remaining is what is there now.
func (k *Keyed) PeekAt(t Time, key string, cost uint64) Decision {
	return k.PeekHashAt(t, k.Hash(key), cost)
}

// PeekHashAt is PeekAt for a key that is given by its hash.
func (k *Keyed) PeekHashAt(t Time, hash, cost uint64) Decision {
	c := price(cost)
	n, l, m := k.look(t, k.place(hash))
	return n.peek(t, l, m, c)
}

// look returns the mark of a key's bucket.
func (k *Keyed) look(t Time, p place) (*numbers, level, uint64) {
	for {
		n, l := k.load(t)
		m := uint64(0)
		g, i := k.find(p)
		if g == nil {
			m = k.absent(p)
		} else {
			m = g.word[i].Load() &^ held
			if g.print[i].Load() != p.print {
				continue
			}
		}
		if k.nums.Load() == n {
			return n, l, m
		}
	}
}

// Strict returns how many decisions were taken from a shared bucket because the key found no slot: the store is too
// small for its keys, or is being flooded with keys.
func (k *Keyed) Strict() uint64 { return k.strict.Load() }
