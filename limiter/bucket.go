// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

// TokenBucket is a token bucket: it holds up to a burst of tokens, earns them at a rate, and grants a request if it
// holds the request's cost, which it then takes. It is the committed bucket of RFC 2697 (CIR, CBS) and decides as the
// continuous-state leaky bucket of ITU-T I.371 and the ATM Forum's GCRA(T, tau) do, counting in tokens instead of time
// so that rate and burst can change under way.
//
// In every window of length W it grants less than burst + rate*W + a millionth of a token, and it refuses nothing that
// the ideal bucket of real numbers would grant with a millionth to spare. Neither adds up over time. Where the rate
// earns whole millionths in a nanosecond (multiples of 1000 per second) it is exact.
//
// The state is one word, moved by compare-and-swap. A decision takes no lock, allocates nothing, and waits only for an
// All decision that is just about to settle the same bucket. All methods may be called concurrently.
type TokenBucket struct{ cell }

// NewTokenBucket returns a full bucket that earns from now on. It fails with ErrBurst for a burst that is negative or
// above MaxBurst. A burst below the cost of a request refuses it always.
func NewTokenBucket(r Rate, burst Tokens) (*TokenBucket, error) {
	return NewTokenBucketAt(Now(), r, burst, Full)
}

// NewTokenBucketAt returns a bucket that holds the given level at t (Full, 0 for empty, or any amount; at most the
// burst) and earns from then on.
func NewTokenBucketAt(t Time, r Rate, burst, level Tokens) (*TokenBucket, error) {
	if err := checkBurst(burst); err != nil {
		return nil, err
	}
	b := new(TokenBucket)
	b.nums.Store(newNumbers(t, r, uint64(burst)).startingWith(level))
	return b, nil
}

// Allow is AllowAt(Now(), 1).
func (b *TokenBucket) Allow() bool { return b.AllowAt(Now(), 1) }

// AllowAt reports whether cost whole tokens can be taken at t, and takes them if so. A cost of 0 is always granted.
func (b *TokenBucket) AllowAt(t Time, cost uint64) bool {
	// The usual cases, without a call; take does the same, and what else there is.
	n := b.nums.Load()
	if l, ok := n.at(t); ok && cost > 0 {
		w := b.word.Load()
		if m, ok := l.take(w, price(cost)); !ok {
			if w < held {
				return false
			}
		} else if b.word.CompareAndSwap(w, m) { // not of a held word: those are above all that can be earned
			if b.nums.Load() == n {
				return true
			}
			undo(&b.word, m, w)
		}
	}
	_, _, _, ok := b.take(t, price(cost))
	return ok
}

// Take is TakeAt(Now(), cost).
func (b *TokenBucket) Take(cost uint64) Decision { return b.TakeAt(Now(), cost) }

// TakeAt decides as AllowAt does and tells what remains, or how long to wait.
func (b *TokenBucket) TakeAt(t Time, cost uint64) Decision {
	c := price(cost)
	n, l, m, ok := b.take(t, c)
	if ok {
		return n.granted(l, m)
	}
	return n.denied(t, l, m, c)
}

// take takes c if it can. It returns the mark afterwards, which is the mark found if it cannot, and what it was judged
// by.
//
// No grant uses numbers that a reconfiguration has replaced: nums are loaded before the swap of the word and compared
// after it. If they are the same, they were in force when the swap happened, for a pointer that is held here cannot
// come to mean other numbers. If not, the swap is undone and the decision made anew.
func (b *TokenBucket) take(t Time, c uint64) (*numbers, level, uint64, bool) {
	for try := 0; ; try++ {
		n, l := b.load(t)
		w := b.word.Load()
		if w >= held {
			pause(try)
			continue
		}
		if c == 0 {
			return n, l, w, true
		}
		m, ok := l.take(w, c)
		if !ok {
			return n, l, w, false
		}
		if b.commit(n, w, m) {
			return n, l, m, true
		}
	}
}

// Peek is PeekAt(Now(), cost).
func (b *TokenBucket) Peek(cost uint64) Decision { return b.PeekAt(Now(), cost) }

// PeekAt returns what TakeAt would decide at t, but takes nothing: Remaining is what is there now.
func (b *TokenBucket) PeekAt(t Time, cost uint64) Decision {
	return b.peek(t, price(cost))
}

func (b *TokenBucket) peek(t Time, c uint64) Decision {
	for {
		n, l := b.load(t)
		m := b.word.Load() &^ held
		if b.nums.Load() == n {
			return n.peek(t, l, m, c)
		}
	}
}

// Reconfigure is ReconfigureAt(Now(), r, burst, AsEarned).
func (b *TokenBucket) Reconfigure(r Rate, burst Tokens) error {
	return b.ReconfigureAt(Now(), r, burst, AsEarned)
}

// ReconfigureAt puts a rate and a burst in force at t and mints nothing: what the bucket holds stays, clamped to the
// new burst; from t on it earns at the new rate. What clamping takes is gone for good. See Growth for what a larger
// burst means. An instant before that of an earlier reconfiguration counts as that one.
//
// Once it has returned, no decision is made with the former numbers any more, in any goroutine. It fails with ErrBurst,
// changing nothing.
func (b *TokenBucket) ReconfigureAt(t Time, r Rate, burst Tokens, g Growth) error {
	if err := checkBurst(burst); err != nil {
		return err
	}
	b.change(t, func(n *numbers) *numbers { return n.next(t, r, uint64(burst), g) })
	return nil
}

// Config returns the rate and the burst in force.
func (b *TokenBucket) Config() (Rate, Tokens) {
	n := b.nums.Load()
	return n.rate, Tokens(n.burst)
}
