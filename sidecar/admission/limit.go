// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/api/expression"
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
	when    *expression.Program // nil where nothing else must hold
	exempt  *exemption          // of the policy; nil where nothing is exempt
	key     []keyPart
	missing quotav1.MissingKey
	cost    cost
	shadow  bool
	// concurrency counts requests under way instead of tokens.
	concurrency bool
	borrowed    bool // the numbers are a client's own
	variants    variants
	variant     *quotav1.Variant // nil for a base
	rate        limiter.Rate     // of the whole limit
	burst       limiter.Tokens
	hold        time.Duration // how long a request may wait for tokens that are lent; below 0 = as the engine says
	delay       time.Duration // how long a request may wait for its tokens; 0 = it is denied at once
	declared    uint64        // requests per period, as the policy says
	period      time.Duration
	units       uint64 // the pod's part, in quotav1.Whole
	scope       quotav1.Scope
	lent        bool // tokens are lent, and the pod is assigned no part

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

// applies reports whether the limit counts a request: one of its matches holds, its expression does, and the policy does not
// exempt the request. An expression that cannot be evaluated does not hold.
func (l *Limit) applies(r *reading) bool {
	if !l.matched(r) || l.exempt.holds(r) {
		return false
	}
	if l.when == nil {
		return true
	}
	holds, err := l.when.Holds(r.facts())
	return err == nil && holds
}

func (l *Limit) matched(r *reading) bool {
	r.variables = r.variables[:0]
	if len(l.matches) == 0 {
		return true
	}
	for i := range l.matches {
		if l.matches[i].holds(r) {
			return true
		}
	}
	return false
}

// mostEver is the most that the whole limit can ever admit at once, in tokens.
func (l *Limit) mostEver() uint64 { return l.burst.Whole() }

// compileLimit returns a limit without share and account.
func compileLimit(p *quotav1.Policy, in *quotav1.Limit) (*Limit, error) {
	l := &Limit{
		id:         in.GetId(),
		namespace:  p.GetNamespace(),
		policy:     p.GetName(),
		name:       in.GetName(),
		generation: p.GetGeneration(),
		scope:      in.GetScope(),
		missing:    in.GetMissingKey(),
		shadow:     in.GetShadow(),
		hold:       -1,
		delay:      time.Duration(min(in.GetMaxDelayNanoseconds(), uint64(maxDelay))),
		variant:    in.GetVariant(),
		names:      []string{p.GetName() + "/" + in.GetName()},
	}
	l.alone = []*Limit{l}
	if p.MaxHoldNanoseconds != nil {
		l.hold = time.Duration(min(p.GetMaxHoldNanoseconds(), uint64(maxHold)))
	}
	if l.id == "" {
		return nil, fmt.Errorf("no id")
	}
	if l.scope != quotav1.Scope_TOTAL && l.scope != quotav1.Scope_PER_POD {
		return nil, fmt.Errorf("unknown scope %v", l.scope)
	}
	switch in.GetStrategy() {
	case quotav1.Strategy_EQUAL_SHARE:
	case quotav1.Strategy_ADAPTIVE:
		l.lent = l.scope == quotav1.Scope_TOTAL
	default:
		return nil, fmt.Errorf("unknown strategy %v", in.GetStrategy())
	}
	if l.lent && in.GetAlgorithm() != quotav1.Algorithm_ALGORITHM_UNSPECIFIED {
		return nil, fmt.Errorf("strategy %v for algorithm %v, whose tokens cannot be lent", in.GetStrategy(), in.GetAlgorithm())
	}
	if err := l.numbers(in); err != nil {
		return nil, err
	}
	if err := l.compileParts(in); err != nil {
		return nil, err
	}
	return l, nil
}

// compileParts compiles what says which requests count, by which key and at which cost.
func (l *Limit) compileParts(in *quotav1.Limit) (err error) {
	if _, known := quotav1.MissingKey_name[int32(l.missing)]; !known {
		return fmt.Errorf("unknown answer %v to a missing key", l.missing)
	}
	switch in.GetAlgorithm() {
	case quotav1.Algorithm_ALGORITHM_UNSPECIFIED:
	case quotav1.Algorithm_CONCURRENCY:
		l.concurrency = true
	default:
		return fmt.Errorf("unknown algorithm %v", in.GetAlgorithm())
	}
	if in.GetWhen() != "" {
		if l.when, err = expression.Compile(in.GetWhen(), expression.Condition); err != nil {
			return fmt.Errorf("when: %w", err)
		}
	}
	if l.cost, err = compileCost(in.GetCost(), in.GetBurst()); err != nil {
		return err
	}
	if in.GetTierBy() != nil {
		tier, err := compileKey(in.GetTierBy())
		if err != nil {
			return fmt.Errorf("tiers: %w", err)
		}
		l.variants.tier = &tier
	}
	for _, m := range in.GetMatches() {
		compiled, err := compileMatch(m)
		if err != nil {
			return err
		}
		l.matches = append(l.matches, compiled)
	}
	for _, k := range in.GetKey() {
		part, err := compileKey(k)
		if err != nil {
			return err
		}
		l.key = append(l.key, part)
	}
	return nil
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
	l.declared, l.period = in.GetRate().GetRequests(), time.Duration(period)
	l.rate, l.burst = rate, limiter.Tokens(in.GetBurst())*limiter.Token
	return nil
}

// maxDelay bounds how long a request may wait.
const maxDelay = time.Minute

// sameAccounts reports whether a limit goes on with the accounts of another: the same buckets, by the same keys, with or
// without lines before them.
func (l *Limit) sameAccounts(next *Limit) bool {
	return (l.delay > 0) == (next.delay > 0) && l.concurrency == next.concurrency && l.lent == next.lent && slices.EqualFunc(l.key, next.key, func(a, b keyPart) bool {
		return proto.Equal(a.source, b.source)
	})
}
