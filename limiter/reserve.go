// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"time"
)

// Reservation is the outcome of ReserveAt: tokens that are taken now and may be used after Wait.
type Reservation struct {
	// OK tells whether the cost was taken. If not, nothing was.
	OK bool

	// Wait is how long after the instant of the reservation the tokens may be used: 0 if they were there. If OK is
	// false it is how long the wait would have been, Never if the cost can never be granted.
	Wait time.Duration

	bucket    *TokenBucket
	old, mark uint64
	shifts    uint64
}

// ReserveAt takes cost whole tokens at t even if the bucket has yet to earn them, provided that this takes no longer
// than maxWait. The caller has to wait for Reservation.Wait before it acts. Requests that come later queue up behind.
func (b *TokenBucket) ReserveAt(t Time, cost uint64, maxWait time.Duration) Reservation {
	c := price(cost)
	for try := 0; ; try++ {
		n, l := b.load(t)
		w := b.word.Load()
		if w >= held {
			pause(try)
			continue
		}
		r := Reservation{bucket: b, old: w, mark: w, shifts: n.shifts}
		if r.OK = c == 0; r.OK {
			return r
		}
		now := false
		r.mark, now = l.take(w, c)
		switch {
		case c > n.burst:
			r.Wait = Never
		case !now:
			r.Wait = n.until(t, r.mark)
		}
		if r.Wait > max(maxWait, 0) || r.Wait == Never || r.mark > limit+limit/2 {
			return r
		}
		if r.OK = b.commit(n, w, r.mark); r.OK {
			return r
		}
	}
}

// Cancel gives the tokens of an unused reservation back and reports whether it could: only if nothing was taken from
// the bucket since, for then the bucket becomes exactly what it would have been. Else they stay taken: those who came
// later have been told times that count on them, and whoever came next could otherwise act together with the last of
// them. Cancelling twice, or a reservation that is not OK, does nothing.
func (r *Reservation) Cancel() bool {
	if !r.OK {
		return false
	}
	r.OK = false
	b := r.bucket
	b.mu.Lock() // so that marks are not shifted back meanwhile
	defer b.mu.Unlock()
	if r.mark == r.old || b.nums.Load().shifts != r.shifts {
		return false
	}
	for try := 0; !b.word.CompareAndSwap(r.mark, r.old); try++ {
		if b.word.Load() != r.mark|held {
			return false
		}
		pause(try)
	}
	return true
}

// Wait takes cost whole tokens, waiting until the bucket has earned them. Who came first is served first. It fails with
// ErrLimit if the cost can never be granted, with context.DeadlineExceeded at once if the wait would outlast the
// context, and with the context's error if that ends first; the tokens are then given back as Reservation.Cancel does.
func (b *TokenBucket) Wait(ctx context.Context, cost uint64) error {
	most, err := patience(ctx)
	if err != nil {
		return err
	}
	r := b.ReserveAt(Now(), cost, most)
	switch {
	case r.OK:
	case r.Wait == Never:
		return ErrLimit
	default:
		return context.DeadlineExceeded
	}
	err = sleep(ctx, r.Wait)
	if err != nil {
		r.Cancel()
	}
	return err
}

// patience is how long ctx allows to wait.
func patience(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline), nil
	}
	return Never - 1, nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retry asks for a decision until it is to allow, waiting as it says in between. Who asks first is not necessarily
// served first.
func retry(ctx context.Context, ask func(Time) Decision) error {
	for {
		most, err := patience(ctx)
		if err != nil {
			return err
		}
		d := ask(Now())
		switch {
		case d.Allowed:
			return nil
		case d.RetryAfter == Never:
			return ErrLimit
		case d.RetryAfter > most:
			return context.DeadlineExceeded
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// Wait takes cost whole tokens from the key's bucket, waiting until it has them. Requests for the same key may overtake
// each other. It fails as TokenBucket.Wait does; nothing is taken then.
func (k *Keyed) Wait(ctx context.Context, key string, cost uint64) error {
	hash := k.Hash(key)
	return retry(ctx, func(t Time) Decision { return k.TakeHashAt(t, hash, cost) })
}
