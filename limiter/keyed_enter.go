// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "sync/atomic"

// stripe is a lock over the keys that hash to it, held while one of them is given a slot, so that no key ever gets two;
// and the bucket shared by those of them that found no slot.
type stripe struct {
	lock  atomic.Bool
	spill atomic.Uint64 // mark and held bit; changed under the lock, or by the All decision that holds it
	_     [48]byte      // a cache line each
}

func newStripes(keys int) []stripe {
	n := 16
	for n < 4096 && n*64 < keys {
		n *= 2
	}
	return make([]stripe, n)
}

func (k *Keyed) stripe(p place) *stripe { return &k.stripes[p.print&uint64(len(k.stripes)-1)] }

// absent is the mark of a key without a slot: no lower than any that it can have had.
func (k *Keyed) absent(p place) uint64 {
	return max(k.stripe(p).spill.Load()&^held, k.forgotten(p))
}

// outcome is how an attempt to own the word of a bucket ended.
type outcome int

const (
	ready   outcome = iota // the cost can be taken, the word is owned
	refused                // the cost is not there
	busy                   // try again
)

// entry is a word that is owned until it is settled or released.
type entry struct {
	word *atomic.Uint64 // nil if nothing is owned
	old  uint64         // mark to restore
	mark uint64         // mark to leave
}

// settle makes the decision final.
func (e entry) settle() uint64 {
	if e.word != nil {
		e.word.Store(e.mark)
	}
	return e.mark
}

// release undoes it, exactly: nobody can have changed an owned word.
func (e entry) release() {
	if e.word != nil {
		e.word.Store(e.old)
	}
}

// enter gives a key that was not found a slot, with c taken, and owns the slot's word. If no slot is free it owns the
// stripe's shared bucket instead. Nothing is entered if c is not there. Words in mine are owned by the caller already.
//
// No key gets two slots, as its stripe is locked from before it is looked for again until it can be found. No taking is
// lost: what a key took from the shared bucket, and what was forgotten with a slot, is at most the mark that it starts
// with. The claim counts if the numbers are still the same after it; from then on nobody else can see or change the
// key's state until the word is settled.
func (k *Keyed) enter(n *numbers, l level, p place, c uint64, mine charges) (entry, outcome) {
	s := k.stripe(p)
	if !s.lock.CompareAndSwap(false, true) {
		return entry{}, busy
	}
	defer s.lock.Store(false)
	if g, _ := k.find(p); g != nil {
		return entry{}, busy
	}
	spill := s.spill.Load()
	shared := mine.owner(&s.spill)
	if spill >= held && shared == nil {
		return entry{}, busy
	}
	old := max(spill&^held, k.forgotten(p))
	from := old
	if shared != nil {
		from = max(from, shared.mark)
	}
	if c == 0 {
		return entry{mark: from}, ready
	}
	mark, ok := l.take(from, c)
	if !ok {
		return entry{mark: from}, refused
	}
	e := entry{old: old, mark: mark}
	at, out := k.claim(n, l, p, s)
	switch {
	case out == ready:
		g := &k.groups[at.group]
		g.print[at.slot].Store(p.print)
		e.word = &g.word[at.slot]
	case out == busy:
		return entry{}, busy
	case shared != nil:
		shared.mark = mark
		k.strict.Add(1)
	default:
		if !s.spill.CompareAndSwap(spill, spill|held) {
			return entry{}, busy
		}
		if k.nums.Load() != n {
			s.spill.Store(spill)
			return entry{}, busy
		}
		e.word, e.old = &s.spill, spill
		k.strict.Add(1)
	}
	return e, ready
}

// claim owns a slot for a new key, whose stripe s is locked: a free one, or one that is freed by moving its key to a
// free slot of that key's other group. It is refused if there is neither. Nobody finds the slot's former key there any
// more.
func (k *Keyed) claim(n *numbers, l level, p place, s *stripe) (spot, outcome) {
	if at, ok := k.free(p, l); ok {
		out := k.own(n, at)
		if out == ready {
			k.forget(at.group, at.word)
		}
		return at, out
	}
	for _, i := range [2]int{p.first, p.other} {
		g := &k.groups[i]
		for j := range g.word {
			from := spot{i, j, g.word[j].Load()}
			if from.word >= held {
				continue
			}
			q := k.placeOf(g.print[j].Load())
			to, count := k.freeIn(q.first+q.other-i, l)
			if count == 0 {
				continue
			}
			if out := k.move(n, q, s, from, to); out != refused {
				return from, out
			}
		}
	}
	return spot{}, refused
}

// move moves the key at q from one slot to a free one, and keeps owning the slot that it left. It is refused if another
// goroutine is about to enter the key. As the key's stripe is locked meanwhile (s is locked already), who looks for the
// key between the slots and does not find it cannot enter it anew.
func (k *Keyed) move(n *numbers, q place, s *stripe, from, to spot) outcome {
	if qs := k.stripe(q); qs != s {
		if !qs.lock.CompareAndSwap(false, true) {
			return refused
		}
		defer qs.lock.Store(false)
	}
	g, h := &k.groups[from.group], &k.groups[to.group]
	if k.own(n, from) != ready {
		return busy
	}
	if g.print[from.slot].Load() != q.print || k.own(n, to) != ready {
		g.word[from.slot].Store(from.word)
		return busy
	}
	k.forget(to.group, to.word)
	h.print[to.slot].Store(q.print)
	h.word[to.slot].Store(from.word)
	g.print[from.slot].Store(0)
	return ready
}

// own owns a slot if its word is as found and the numbers are still in force. It is busy if not.
func (k *Keyed) own(n *numbers, at spot) outcome {
	word := &k.groups[at.group].word[at.slot]
	if !word.CompareAndSwap(at.word, at.word|held) {
		return busy
	}
	if k.nums.Load() != n {
		word.Store(at.word)
		return busy
	}
	return ready
}
