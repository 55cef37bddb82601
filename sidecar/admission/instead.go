// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/limiter"
)

// Numbers are a rate that a door's client asks to be judged by, instead of the policy's own: Requests per Period, and as many
// at once.
type Numbers struct {
	Requests uint64
	Period   time.Duration
}

// ErrNumbers says that a client's own numbers cannot be used.
var ErrNumbers = errors.New("numbers of the request's own")

// maxInstead bounds how many different numbers a limit remembers: each costs memory for its keys.
const maxInstead = 64

// instead holds a limit's accounts by the numbers of clients.
type instead struct {
	mu     sync.Mutex
	limits map[Numbers]*Limit // guarded by mu
}

// by returns the limit as it is with other numbers, of which the pod has the same part as of the limit's own. Its buckets start
// full.
func (l *Limit) by(n Numbers, keys int, now limiter.Time) (*Limit, error) {
	if l.concurrency {
		return nil, fmt.Errorf("%w: limit %s counts requests under way, which have no rate", ErrNumbers, l.Name())
	}
	units := l.part()
	i := &l.account.instead
	i.mu.Lock()
	defer i.mu.Unlock()
	other := i.limits[n]
	switch {
	case other != nil && other.units == units:
		return other, nil
	case other != nil:
		next := *other
		next.alone = []*Limit{&next}
		next.give(units)
		if err := next.account.reconfigure(now, next.shareRate, next.shareBurst); err != nil {
			panic("admission: a part of a valid burst is no valid burst: " + err.Error())
		}
		i.limits[n] = &next
		return &next, nil
	case len(i.limits) >= maxInstead:
		return nil, fmt.Errorf("%w: limit %s was asked by %d different ones already", ErrNumbers, l.Name(), maxInstead)
	}
	rate, err := limiter.NewRate(n.Requests, n.Period)
	if err != nil || n.Requests == 0 || n.Requests > maxCost {
		return nil, fmt.Errorf("%w: %d requests per %s", ErrNumbers, n.Requests, n.Period)
	}
	other = &Limit{
		id: l.id, namespace: l.namespace, policy: l.policy, name: l.name, scope: l.scope, shadow: l.shadow, key: l.key, cost: l.cost,
		names: l.names, rate: rate, burst: limiter.Tokens(n.Requests) * limiter.Token, declared: n.Requests, period: n.Period,
		account: &account{counters: l.account.counters}, borrowed: true,
	}
	other.alone = []*Limit{other}
	other.give(units)
	if len(l.key) == 0 {
		other.account.bucket, err = limiter.NewTokenBucketAt(now, other.shareRate, other.shareBurst, limiter.Full)
	} else {
		other.account.keyed, err = limiter.NewKeyedAt(now, other.shareRate, other.shareBurst, limiter.Full, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNumbers, err)
	}
	if i.limits == nil {
		i.limits = map[Numbers]*Limit{}
	}
	i.limits[n] = other
	return other, nil
}

// part is the pod's part of the limit, in quotav1.Whole: as it is assigned, or as it would be if nothing were lent.
func (l *Limit) part() uint64 {
	if a := l.account.lent; a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.sleeper.Units()
	}
	return l.units
}
