// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/bits"
	"sync/atomic"
)

// slots in a group: the prints fill one cache line and the words the next.
const slots = 8

// group is a set of slots. A key lives in a slot of one of its two groups.
type group struct {
	print [slots]atomic.Uint64 // hash of the key, 0 if never used
	word  [slots]atomic.Uint64 // mark and held bit; 0 if never used
}

// table is the fixed memory of a Keyed store.
type table struct {
	groups []group

	// gone holds, for each span of groups, the highest mark that was forgotten in it. An absent key counts as having
	// had it. With a clock that only moves forward that changes nothing, as only full buckets are forgotten; but it
	// keeps a decision that read the clock earlier than the one that forgot from finding the bucket full before its
	// time.
	gone []atomic.Uint64
}

const groupsPerGone = 64

func newTable(keys int) table {
	// 16 bytes a slot and 15 % spare: with two choices of 8 slots and one move a new key practically always finds a
	// slot below 90 %.
	n := int((int64(keys)*23/20 + slots - 1) / slots)
	n = max(n, 2)
	return table{
		groups: make([]group, n),
		gone:   make([]atomic.Uint64, n/groupsPerGone+1),
	}
}

// place is where a key can be: its print and its two groups.
type place struct {
	print uint64
	first int
	other int
}

// mix spreads hashes that are not (SplitMix64's finaliser). It is a bijection: prints are equal only if hashes are.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

func (t *table) place(hash uint64) place { return t.placeOf(max(mix(hash), 1)) }

// placeOf computes a key's groups from its print alone, so that a key can be moved without being asked for.
func (t *table) placeOf(print uint64) place {
	n := uint64(len(t.groups))
	a, lo := bits.Mul64(print, n)
	// The low half is what the first choice left unused. The second is another group, for any value of it.
	b, _ := bits.Mul64(lo*0x9e3779b97f4a7c15, n-1)
	if b >= a {
		b++
	}
	return place{print: print, first: int(a), other: int(b)}
}

// find returns the group and slot of a key, or nil.
func (t *table) find(p place) (*group, int) {
	a, b := &t.groups[p.first], &t.groups[p.other]
	// Read from both groups before the first branch, so that the two cache misses overlap.
	early := b.print[0].Load()
	for i := range a.print {
		if a.print[i].Load() == p.print {
			return a, i
		}
	}
	if early == p.print {
		return b, 0
	}
	for i := 1; i < slots; i++ {
		if b.print[i].Load() == p.print {
			return b, i
		}
	}
	return nil, 0
}

// spot is a slot of the table and the word found there.
type spot struct {
	group, slot int
	word        uint64
}

// free picks a slot for a new key at a level: of its two groups the one with more slots that are unused or hold a full
// bucket.
func (t *table) free(p place, l level) (spot, bool) {
	a, n := t.freeIn(p.first, l)
	b, m := t.freeIn(p.other, l)
	if m > n {
		return b, true
	}
	return a, n > 0
}

// freeIn returns the first free slot of a group and how many there are.
func (t *table) freeIn(group int, l level) (first spot, count int) {
	for i := range t.groups[group].word {
		if w := t.groups[group].word[i].Load(); w <= l.full {
			if count == 0 {
				first = spot{group, i, w}
			}
			count++
		}
	}
	return first, count
}

// forgotten is the mark that an absent key may have had.
func (t *table) forgotten(p place) uint64 {
	return max(t.gone[p.first/groupsPerGone].Load(), t.gone[p.other/groupsPerGone].Load())
}

// forget records that a bucket with mark m is about to be forgotten in a key's group.
func (t *table) forget(group int, m uint64) {
	raise(&t.gone[group/groupsPerGone], m)
}

// raise lifts a word to m at least.
func raise(w *atomic.Uint64, m uint64) {
	for {
		v := w.Load()
		if v >= m || w.CompareAndSwap(v, m) {
			return
		}
	}
}
