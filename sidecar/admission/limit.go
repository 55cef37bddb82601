// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// Limit is one limit of the snapshot in force, with the pod's part of it. It is immutable but for its account.
type Limit struct {
	id         string
	namespace  string
	policy     string
	name       string
	generation int64

	matches []matcher
	key     []keyPart
	rate    limiter.Rate // of the whole limit
	burst   limiter.Tokens
	units   uint64 // the pod's part, in quotav1.Whole
	scope   quotav1.Scope

	// The pod's part of the numbers: exact, or rounded down.
	shareRate  limiter.Rate
	shareBurst limiter.Tokens

	names   []string // of this limit alone: what a denial by it lists
	alone   []*Limit // this limit alone
	account *account
}

// ID is the identity of the limit's accounts.
func (l *Limit) ID() string { return l.id }

// Name is policy/limit, for people.
func (l *Limit) Name() string { return l.names[0] }

// give sets the pod's part of the limit, in units of quotav1.Whole.
func (l *Limit) give(units uint64) {
	l.units = units
	l.shareRate = l.rate.Part(units, quotav1.Whole)
	l.shareBurst = l.burst.Part(units, quotav1.Whole)
}

// applies reports whether one of the limit's matches holds.
func (l *Limit) applies(r *Request, p *paths) bool {
	if len(l.matches) == 0 {
		return true
	}
	for i := range l.matches {
		if l.matches[i].holds(r, p) {
			return true
		}
	}
	return false
}

// account is where a limit's tokens are in this process. It outlives snapshots for as long as they hold the limit.
type account struct {
	bucket *limiter.TokenBucket // nil when the limit has a key
	keyed  *limiter.Keyed       // nil when it has none

	allowed, denied *counter // shared with the accounts of the same limit before and after
}

// counter is alone in its cache line: the two of a hot limit are written by every core.
type counter struct {
	atomic.Uint64
	_ [56]byte
}

func (a *account) take(now limiter.Time, hash uint64) limiter.Decision {
	if a.keyed != nil {
		return a.keyed.TakeHashAt(now, hash, cost)
	}
	return a.bucket.TakeAt(now, cost)
}

func (a *account) charge(hash uint64) limiter.Charge {
	if a.keyed != nil {
		return a.keyed.Charge(hash, cost)
	}
	return a.bucket.Charge(cost)
}

func (a *account) reconfigure(now limiter.Time, rate limiter.Rate, burst limiter.Tokens) error {
	if a.keyed != nil {
		return a.keyed.ReconfigureAt(now, rate, burst, limiter.AsEarned)
	}
	return a.bucket.ReconfigureAt(now, rate, burst, limiter.AsEarned)
}

// compileLimit returns a limit without share and account.
func compileLimit(p *quotav1.Policy, in *quotav1.Limit) (*Limit, error) {
	l := &Limit{
		id:         in.GetId(),
		namespace:  p.GetNamespace(),
		policy:     p.GetName(),
		name:       in.GetName(),
		generation: p.GetGeneration(),
		scope:      in.GetScope(),
		names:      []string{p.GetName() + "/" + in.GetName()},
	}
	l.alone = []*Limit{l}
	if l.id == "" {
		return nil, fmt.Errorf("no id")
	}
	if l.scope != quotav1.Scope_TOTAL && l.scope != quotav1.Scope_PER_POD {
		return nil, fmt.Errorf("unknown scope %v", l.scope)
	}
	if in.GetStrategy() != quotav1.Strategy_EQUAL_SHARE {
		return nil, fmt.Errorf("unknown strategy %v", in.GetStrategy())
	}
	if err := l.numbers(in); err != nil {
		return nil, err
	}
	for _, m := range in.GetMatches() {
		compiled, err := compileMatch(m)
		if err != nil {
			return nil, err
		}
		l.matches = append(l.matches, compiled)
	}
	for _, k := range in.GetKey() {
		part, err := compileKey(k)
		if err != nil {
			return nil, err
		}
		l.key = append(l.key, part)
	}
	return l, nil
}

func (l *Limit) numbers(in *quotav1.Limit) error {
	period := in.GetRate().GetPeriodNanoseconds()
	if in.GetRate().GetRequests() == 0 || period == 0 || period > math.MaxInt64 {
		return fmt.Errorf("rate of %d requests per %d ns", in.GetRate().GetRequests(), period)
	}
	rate, err := limiter.NewRate(in.GetRate().GetRequests(), time.Duration(period))
	if err != nil {
		return err
	}
	if in.GetBurst() == 0 || in.GetBurst() > uint64(limiter.MaxBurst/limiter.Token) {
		return fmt.Errorf("burst of %d", in.GetBurst())
	}
	l.rate, l.burst = rate, limiter.Tokens(in.GetBurst())*limiter.Token
	return nil
}
