// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "sync/atomic"

// Charge is one part of an All decision: a cost on a TokenBucket or on a key of a Keyed store. A slice of charges can
// be reused for the next decision by overwriting its elements; it must not be used by two decisions at once.
type Charge struct {
	// Decision is set by AllAt. Allowed tells whether this limiter would have granted its cost, also if another one
	// refused and so nothing was taken.
	Decision Decision

	bucket *TokenBucket
	keyed  *Keyed
	place  place
	cost   uint64

	entry
	nums  *numbers
	level level
}

// Charge returns the part of an All decision that takes cost whole tokens from b.
func (b *TokenBucket) Charge(cost uint64) Charge {
	return Charge{bucket: b, cost: price(cost)}
}

// Charge returns the part of an All decision that takes cost whole tokens from the bucket of a key given by its hash.
func (k *Keyed) Charge(hash, cost uint64) Charge {
	return Charge{keyed: k, place: k.place(hash), cost: price(cost)}
}

type charges []Charge

// All is AllAt(Now(), parts).
func All(parts []Charge) Decision { return AllAt(Now(), parts) }

// AllAt takes all the costs at t, or none of them, in one atomic step: no other decision ever sees some of them taken,
// and a refusal leaves every bucket exactly as it was. The same limiter or key may appear more than once.
//
// Remaining and Limit are those of the part with the least remaining; RetryAfter is the longest of the parts that
// refused, which is when all costs would be granted if nobody else took anything. Without parts the answer is Allowed.
//
// A refusal only reads. To grant, each bucket's word is owned in turn (one bit of the word, held for some tens of
// nanoseconds), judged and changed; when all are owned and no numbers have been replaced since they were loaded, the
// decision is made, and the words are let go with the costs taken. If a cost turns out not to be there, they are let go
// as they were: nobody can have touched them, so nothing is ever refunded that could be refunded wrongly. Who meets a
// word of another All decision lets its own words go before waiting for it, so none waits for another in a circle.
func AllAt(t Time, parts []Charge) Decision {
	all := charges(parts)
	for try := 0; ; try++ {
		if !all.look(t) {
			return all.answer(false)
		}
		i, out := all.own(t)
		if out == ready {
			for i := range all {
				c := &all[i]
				c.settle()
				c.Decision = c.nums.granted(c.level, c.mark)
			}
			return all.answer(true)
		}
		for j := range all[:i] {
			all[j].release()
		}
		if out == refused {
			c := &all[i]
			c.Decision = c.nums.denied(t, c.level, c.mark, c.cost)
			return all.answer(false)
		}
		pause(try)
	}
}

// look sets the decisions to what each part would decide alone, and reports whether all would grant.
func (all charges) look(t Time) bool {
	ok := true
	for i := range all {
		c := &all[i]
		if c.bucket != nil {
			c.Decision = c.bucket.peek(t, c.cost)
		} else {
			n, l, m := c.keyed.look(t, c.place)
			c.Decision = n.peek(t, l, m, c.cost)
		}
		ok = ok && c.Decision.Allowed
	}
	return ok
}

// own owns the words of all parts, with the costs taken. If it cannot, it returns the index of the part that stopped
// it; those before it are owned.
func (all charges) own(t Time) (int, outcome) {
	for i := range all {
		if out := all[i].own(t, all[:i]); out != ready {
			return i, out
		}
	}
	for i := range all {
		if all[i].current() != all[i].nums {
			return len(all), busy
		}
	}
	return len(all), ready
}

func (c *Charge) current() *numbers {
	if c.bucket != nil {
		return c.bucket.nums.Load()
	}
	return c.keyed.nums.Load()
}

// own owns the word of one part, with its cost taken from it.
func (c *Charge) own(t Time, before charges) outcome {
	c.entry = entry{}
	c.nums = c.current()
	l, ok := c.nums.from(t)
	if !ok {
		return busy // look shifts the marks back
	}
	c.level = l
	word, print := (*atomic.Uint64)(nil), (*atomic.Uint64)(nil)
	if c.bucket != nil {
		word = &c.bucket.word
	} else {
		g, i := c.keyed.find(c.place)
		if g == nil {
			e, out := c.keyed.enter(c.nums, l, c.place, c.cost, before)
			c.entry = e
			return out
		}
		word, print = &g.word[i], &g.print[i]
	}
	w := word.Load()
	owner := before.owner(word)
	if w >= held && owner == nil {
		return busy
	}
	if owner != nil {
		w = owner.mark
	}
	mark, ok := w, true
	if c.cost > 0 {
		mark, ok = l.take(w, c.cost)
	}
	switch {
	case !ok:
		c.mark = w
		return refused
	case owner != nil:
		owner.mark, c.mark = mark, mark
		return ready
	case !word.CompareAndSwap(w, w|held):
		return busy
	case print != nil && print.Load() != c.place.print:
		word.Store(w)
		return busy
	}
	c.entry = entry{word: word, old: w, mark: mark}
	return ready
}

// owner is the part that owns a word.
func (all charges) owner(word *atomic.Uint64) *Charge {
	for i := range all {
		if all[i].word == word {
			return &all[i]
		}
	}
	return nil
}

// answer sums up the decisions of the parts.
func (all charges) answer(ok bool) Decision {
	sum := Decision{Allowed: ok}
	for i := range all {
		d := &all[i].Decision
		if i == 0 || d.Remaining < sum.Remaining {
			sum.Remaining, sum.Limit = d.Remaining, d.Limit
		}
		sum.RetryAfter = max(sum.RetryAfter, d.RetryAfter)
	}
	return sum
}
