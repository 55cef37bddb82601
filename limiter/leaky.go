// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"time"
)

// LeakyBucket is the leaky bucket as a queue: requests leave at a constant rate, one at a time, and wait for their turn
// instead of being refused, unless the queue has no room for them. It saves up nothing: after an idle time requests
// leave no faster. (Turner, "New directions in communications", 1986.)
//
// A request of cost n leaves when everything before it has left, and the next leaves n/rate later; so in every window
// of length W what leaves costs at most rate*W and one request, give or take a nanosecond and a millionth of a token.
// The queue keeps no list: who comes is told how long to wait.
//
// The state is one word, moved by compare-and-swap; see TokenBucket. All methods may be called concurrently.
type LeakyBucket struct{ cell }

// Turn is the answer of a LeakyBucket. If it is Allowed, the request may go on after Wait. Remaining is the room that
// is left in the queue, Limit all of it, and RetryAfter, if it is not Allowed, is how long until there is room.
type Turn struct {
	Decision

	// Wait is how long after the decision the request may go on, rounded up to a nanosecond.
	Wait time.Duration
}

// NewLeakyBucket returns an empty queue with the given room. Requests whose costs exceed the room never fit; one that
// meets an empty queue goes on at once, and counts against the room until rate has drained it. It fails with ErrBurst
// for a room that is negative or above MaxBurst.
func NewLeakyBucket(r Rate, room Tokens) (*LeakyBucket, error) {
	return NewLeakyBucketAt(Now(), r, room)
}

// NewLeakyBucketAt is NewLeakyBucket at t.
func NewLeakyBucketAt(t Time, r Rate, room Tokens) (*LeakyBucket, error) {
	if err := checkBurst(room); err != nil {
		return nil, err
	}
	b := new(LeakyBucket)
	n := newNumbers(t, r, 0) // a burst of 0: nothing is saved up
	n.room = uint64(room)
	b.nums.Store(n)
	return b, nil
}

// Take is TakeAt(Now(), cost).
func (b *LeakyBucket) Take(cost uint64) Turn { return b.TakeAt(Now(), cost) }

// TakeAt joins the queue at t if there is room for cost whole tokens, and tells how long to wait.
func (b *LeakyBucket) TakeAt(t Time, cost uint64) Turn {
	turn, _, _, _ := b.take(t, price(cost))
	return turn
}

// take joins the queue. The mark is the end of the queue: the count of earned tokens at which it will have drained.
func (b *LeakyBucket) take(t Time, c uint64) (turn Turn, n *numbers, from, to uint64) {
	for try := 0; ; try++ {
		n, l := b.load(t)
		w := b.word.Load()
		if w >= held {
			pause(try)
			continue
		}
		turn := Turn{Decision: Decision{Limit: Tokens(n.room)}}
		end, queued := l.full, uint64(0)
		if w > l.full {
			end, queued = w, w-l.earned
			turn.Wait = n.until(t, w)
		}
		turn.Allowed = queued+c <= n.room
		switch {
		case c > n.room:
			turn.RetryAfter = Never
		case !turn.Allowed:
			turn.RetryAfter = n.until(t, end+c-n.room)
		case turn.Wait == Never:
			turn.Allowed, turn.RetryAfter = false, Never
		case c > 0 && !b.commit(n, w, end+c):
			continue
		}
		if turn.Allowed {
			queued += c
		} else {
			turn.Wait = 0
		}
		turn.Remaining = Tokens(n.room - min(queued, n.room))
		return turn, n, w, end + c
	}
}

// Wait joins the queue and waits for its turn. It fails with ErrFull if there is no room, with ErrLimit if there never
// will be, with context.DeadlineExceeded at once if the turn would come after the context's deadline, and with the
// context's error if that ends first. A place in the queue that is given up is taken back if it is the last one, and
// else passes unused.
func (b *LeakyBucket) Wait(ctx context.Context, cost uint64) error {
	most, err := patience(ctx)
	if err != nil {
		return err
	}
	turn, n, from, to := b.take(Now(), price(cost))
	switch {
	case turn.Allowed:
	case turn.RetryAfter == Never:
		return ErrLimit
	default:
		return ErrFull
	}
	if turn.Wait > most {
		err = context.DeadlineExceeded
	} else {
		err = sleep(ctx, turn.Wait)
	}
	if err != nil && from != to {
		b.mu.Lock() // so that marks are not shifted back meanwhile
		defer b.mu.Unlock()
		if b.nums.Load().shifts == n.shifts {
			b.word.CompareAndSwap(to, from)
		}
	}
	return err
}

// Reconfigure is ReconfigureAt(Now(), r, room).
func (b *LeakyBucket) Reconfigure(r Rate, room Tokens) error { return b.ReconfigureAt(Now(), r, room) }

// ReconfigureAt puts a rate and a room in force at t. What is queued stays queued, also if it is more than the new
// room, and drains at the new rate; requests that have been told their wait keep it. It fails with ErrBurst, changing
// nothing.
func (b *LeakyBucket) ReconfigureAt(t Time, r Rate, room Tokens) error {
	if err := checkBurst(room); err != nil {
		return err
	}
	b.change(t, func(n *numbers) *numbers {
		m := n.next(t, r, 0, AsEarned)
		m.room = uint64(room)
		return m
	})
	return nil
}
