// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"runtime"
	"sync/atomic"
)

const (
	maxStripes  = 64
	maxCredit   = 1024      // whole tokens in a stripe
	borrow      = 8         // stripes hold at most a borrow-th of the burst
	creditMask  = 1<<32 - 1 // of a credit word: tokens; above it, the generation of the numbers that it was set under
	creditShift = 32
)

// StripedBucket is a token bucket for one very hot limit: most requests are granted from a small credit of the
// processor that they run on, without reading the clock and without touching memory that other processors write. It
// scales with processors, where one word that all of them move does not.
//
// Credits are taken from the bucket beforehand and are part of the burst: the bucket itself fills up to burst - reserve
// only, the reserve being what all credits together can hold, at most an eighth of the burst. So the law of TokenBucket
// holds with the full burst, and nothing is refused that a TokenBucket with a burst of burst - reserve would grant:
// that is its resolution. Before it refuses, it looks at the credits of all processors. A cost above burst - reserve is
// refused always. With a burst below 8 tokens for each processor there is no reserve, and it is a TokenBucket.
//
// All methods may be called concurrently. Under contention a request may be refused while another one gathers the last
// credits.
type StripedBucket struct {
	cell
	stripes []credit
	byCore  bool // each core has a stripe of its own
}

// credit is what one processor may grant. The padding keeps it on cache lines of its own, prefetched neighbours
// included.
type credit struct {
	word atomic.Uint64
	_    [120]byte
}

// NewStripedBucket returns a full bucket that earns from now on, with a stripe for each processor that GOMAXPROCS
// allows. It fails with ErrBurst.
func NewStripedBucket(r Rate, burst Tokens) (*StripedBucket, error) {
	return NewStripedBucketAt(Now(), r, burst, Full)
}

// NewStripedBucketAt returns a bucket that holds the given level at t (Full, 0 for empty, or any amount), at most burst
// - reserve, and earns from then on.
func NewStripedBucketAt(t Time, r Rate, burst, level Tokens) (*StripedBucket, error) {
	return newStriped(t, r, burst, level, runtime.GOMAXPROCS(0))
}

func newStriped(t Time, r Rate, burst, level Tokens, processors int) (*StripedBucket, error) {
	if err := checkBurst(burst); err != nil {
		return nil, err
	}
	n := 1
	for n < processors && n < maxStripes {
		n *= 2
	}
	b := &StripedBucket{stripes: make([]credit, n), byCore: cores() > 0 && cores() <= n}
	each := b.each(burst)
	nums := newNumbers(t, r, uint64(burst)-uint64(n)*price(each)).startingWith(level)
	nums.room = each
	b.nums.Store(nums)
	return b, nil
}

// each is how many whole tokens one stripe may hold.
func (b *StripedBucket) each(burst Tokens) uint64 {
	return min(burst.Whole()/(borrow*uint64(len(b.stripes))), maxCredit)
}

// Allow reports whether cost whole tokens can be taken now, and takes them if so. It reads FastNow only if the
// processor's credit does not suffice.
func (b *StripedBucket) Allow(cost uint64) bool {
	// What home does, since one more call would take a fifth of the time.
	home := len(b.stripes) - 1
	if b.byCore {
		home &= core()
	} else {
		home &= processor()
	}
	return b.stripes[home].spend(cost) || b.renew(FastNow(), home, cost)
}

// AllowAt is Allow at t.
func (b *StripedBucket) AllowAt(t Time, cost uint64) bool {
	home := b.home()
	return b.stripes[home].spend(cost) || b.renew(t, home, cost)
}

// home is the stripe that others are least likely to use just now: a hint, as the goroutine may move on at any moment.
func (b *StripedBucket) home() int {
	if b.byCore {
		return core() & (len(b.stripes) - 1)
	}
	return processor() & (len(b.stripes) - 1)
}

// spend takes a cost from a credit, if it is there.
func (s *credit) spend(cost uint64) bool {
	w := s.word.Load()
	return w&creditMask >= cost && s.word.CompareAndSwap(w, w-cost)
}

// renew takes a cost from the bucket, and the home stripe's next credit with it as far as that is there.
func (b *StripedBucket) renew(t Time, home int, cost uint64) bool {
	s, c := &b.stripes[home], price(cost)
	for try := 0; ; try++ {
		if s.spend(cost) { // renewed by another goroutine
			return true
		}
		n, l := b.load(t)
		w, have := b.word.Load(), s.word.Load()&creditMask
		if m, ok := l.take(w, c); ok {
			more := min((l.earned-m)/uint64(Token), n.room-min(have, n.room))
			if b.commit(n, w, m+price(more)) {
				b.deposit(n, s, more)
				return true
			}
			continue
		}
		if c > n.burst || uint64(l.balance(w))+b.credits() < c {
			return false
		}
		if b.gather(n, l, home, cost) {
			return true
		}
		pause(try)
	}
}

// deposit adds to a stripe's credit what was taken from the bucket for it under the numbers n, as far as the stripe may
// hold. What it may not hold, because others filled it, or because the numbers have been replaced, is lost, on the
// strict side.
func (b *StripedBucket) deposit(n *numbers, s *credit, tokens uint64) {
	for tokens > 0 {
		w := s.word.Load()
		if uint32(w>>creditShift) != n.generation {
			return
		}
		have := w & creditMask
		if s.word.CompareAndSwap(w, w+min(tokens, n.room-min(have, n.room))) {
			return
		}
	}
}

// gather takes a cost that neither the bucket nor the own stripe has alone: all that is needed from the stripes,
// beginning at home, and the rest from the bucket. If that fails, it puts back what it took, where it took it.
func (b *StripedBucket) gather(n *numbers, l level, home int, cost uint64) bool {
	var took [maxStripes]uint16
	need := cost
	for i := 0; i < len(b.stripes) && need > 0; i++ {
		j := (home + i) & (len(b.stripes) - 1)
		s := &b.stripes[j]
		w := s.word.Load()
		k := min(w&creditMask, need)
		if uint32(w>>creditShift) == n.generation && k > 0 && s.word.CompareAndSwap(w, w-k) {
			took[j] = uint16(k)
			need -= k
		}
	}
	if need == 0 {
		// The numbers were in force when the last credit was taken, or the credits are void.
		if b.nums.Load() == n {
			return true
		}
	} else {
		w := b.word.Load()
		if m, ok := l.take(w, price(need)); ok && b.commit(n, w, m) {
			return true
		}
	}
	for j, k := range took {
		b.deposit(n, &b.stripes[j&(len(b.stripes)-1)], uint64(k))
	}
	return false
}

// TakeAt decides as AllowAt does and tells what remains, in the bucket and all credits, or how long to wait. It is
// slower.
func (b *StripedBucket) TakeAt(t Time, cost uint64) Decision {
	ok := b.AllowAt(t, cost)
	n, l := b.load(t)
	m, credits := b.word.Load(), b.credits()
	d := Decision{
		Allowed:   ok,
		Remaining: l.balance(m) + Tokens(credits),
		Limit:     Tokens(n.burst + uint64(len(b.stripes))*price(n.room)),
	}
	switch c := price(cost); {
	case ok:
	case c > n.burst:
		d.RetryAfter = Never
	default:
		d.RetryAfter = n.until(t, max(m, l.full)+c-min(credits, c))
	}
	return d
}

// credits is what all stripes hold, in millionths.
func (b *StripedBucket) credits() uint64 {
	sum := uint64(0)
	for i := range b.stripes {
		sum += b.stripes[i].word.Load() & creditMask
	}
	return price(sum)
}

// Reserve returns how much of the burst is set aside for the processors' credits.
func (b *StripedBucket) Reserve() Tokens {
	return Tokens(len(b.stripes)) * Tokens(price(b.nums.Load().room))
}

// Reconfigure is ReconfigureAt(Now(), r, burst, AsEarned).
func (b *StripedBucket) Reconfigure(r Rate, burst Tokens) error {
	return b.ReconfigureAt(Now(), r, burst, AsEarned)
}

// ReconfigureAt puts a rate and a burst in force at t, as TokenBucket.ReconfigureAt does; credits that exceed what the
// new burst sets aside for them go back to the bucket. Once it has returned, no decision is made with the former
// numbers or with credit given under them.
func (b *StripedBucket) ReconfigureAt(t Time, r Rate, burst Tokens, g Growth) error {
	if err := checkBurst(burst); err != nil {
		return err
	}
	each := b.each(burst)
	main := uint64(burst) - uint64(len(b.stripes))*price(each)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rebaseLocked(t)
	n := b.nums.Load().next(t, r, main, g)
	n.room = each
	b.nums.Store(n)
	back := uint64(0)
	for i := range b.stripes {
		back += b.stripes[i].stamp(n)
	}
	w := b.word.Load()
	for !b.word.CompareAndSwap(w, shifted(w, price(back))) {
		w = b.word.Load()
	}
	return nil
}

// stamp clamps a credit to what the numbers n allow and marks it as of their generation: every swap of the word by who
// read it before fails from now on, so no credit given or spent under former numbers appears any more. It returns what
// it took.
func (s *credit) stamp(n *numbers) uint64 {
	for {
		w := s.word.Load()
		keep := min(w&creditMask, n.room)
		if s.word.CompareAndSwap(w, uint64(n.generation)<<creditShift|keep) {
			return w&creditMask - keep
		}
	}
}
