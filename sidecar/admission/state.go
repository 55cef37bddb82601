// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// State is what is in force, for people.
type State struct {
	SnapshotVersion string        `json:"snapshotVersion,omitempty"`
	Policies        []PolicyState `json:"policies"`
}

// PolicyState is one policy of the snapshot.
type PolicyState struct {
	Namespace  string       `json:"namespace"`
	Name       string       `json:"name"`
	UID        string       `json:"uid"`
	Generation int64        `json:"generation"`
	Limits     []LimitState `json:"limits"`
}

// LimitState is one limit and the pod's part of it.
type LimitState struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Variant names the override or tier whose numbers these are; empty for the limit's own.
	Variant string `json:"variant,omitempty"`
	Scope   string `json:"scope"`
	// Shadow tells that the limit denies nothing.
	Shadow bool `json:"shadow,omitempty"`
	// Requests per Period and Burst are the whole limit's.
	Requests uint64 `json:"requests"`
	Period   string `json:"period"`
	Burst    uint64 `json:"burst"`
	// ShareUnits of quotav1.Whole are the pod's part, ShareFraction is the same as a number.
	ShareUnits    uint64  `json:"shareUnits"`
	ShareFraction float64 `json:"shareFraction"`
	RatePerSecond float64 `json:"ratePerSecond"` // of the share
	ShareBurst    float64 `json:"shareBurst"`
	// InFlight is how many requests are under way, of a limit of concurrency.
	InFlight *uint64 `json:"inFlight,omitempty"`
	// Balance is what is left, of a limit without a key.
	Balance *float64 `json:"balance,omitempty"`
	// Keys is about how many keys are not full, of a limit with a key.
	Keys *int `json:"keys,omitempty"`
	// SharedKeys counts decisions on keys that found no memory of their own and shared a bucket, on the strict side.
	SharedKeys uint64 `json:"sharedKeys,omitempty"`
	// Waiting counts the requests that wait for tokens now, Held those that ever had to: of limits that delay or are lent.
	Waiting *uint64 `json:"waiting,omitempty"`
	Held    *uint64 `json:"held,omitempty"`
	// Lent is there where tokens are lent to the pods where the demand is.
	Lent *LentState `json:"lent,omitempty"`
	// Allowed and Denied count requests since the process started, AllowedCost and DeniedCost what they cost.
	Allowed     uint64 `json:"allowed"`
	Denied      uint64 `json:"denied"`
	AllowedCost uint64 `json:"allowedCost"`
	DeniedCost  uint64 `json:"deniedCost"`
}

// Reasons for not being ready.
var (
	ErrNoSnapshot = errors.New("no snapshot yet")
	ErrNoShare    = errors.New("no share yet")
)

// Ready returns nil when a snapshot is in force and the pod has a share of each of its limits.
func (e *Engine) Ready() error {
	t := e.table.Load()
	if t == nil {
		return ErrNoSnapshot
	}
	for _, l := range t.limits {
		if !l.ready() {
			return fmt.Errorf("%w of limit %s", ErrNoShare, l.Name())
		}
	}
	return nil
}

// ready reports whether the pod has its part of the limit. Where tokens are lent it has, once a leader has said what it is,
// be it nothing: the tokens are where the demand is.
func (l *Limit) ready() bool {
	if a := l.account.lent; a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.sleeper.Ordered()
	}
	return l.units > 0
}

// SnapshotVersion is the version of the snapshot in force, empty when there is none.
func (e *Engine) SnapshotVersion() string {
	if t := e.table.Load(); t != nil {
		return t.version
	}
	return ""
}

// Holdings are the shares in force. A limit that is lent is among them with the smallest share, for a leader that knows it in
// another form only; what is held of it is said in the Report.
func (e *Engine) Holdings() []*quotav1.Holding {
	var out []*quotav1.Holding
	if t := e.table.Load(); t != nil {
		for _, l := range t.limits {
			switch {
			case l.units > 0:
				out = append(out, &quotav1.Holding{LimitId: l.id, Units: l.units})
			case l.account.lent != nil:
				out = append(out, &quotav1.Holding{LimitId: l.id, Units: 1})
			}
		}
	}
	return out
}

// Usage are the counters of the limits in force.
func (e *Engine) Usage() []*quotav1.LimitUsage {
	e.mu.Lock()
	t := e.last
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	var out []*quotav1.LimitUsage
	for _, l := range t.limits {
		out = append(out, &quotav1.LimitUsage{
			LimitId: l.id, Admitted: l.account.allowed.cost.Load(), Denied: l.account.denied.cost.Load(), Offered: new(l.account.offered()),
		})
	}
	return out
}

// State returns what is in force at an instant.
func (e *Engine) State(now limiter.Time) State {
	out := State{Policies: []PolicyState{}}
	t := e.table.Load()
	if t == nil {
		return out
	}
	out.SnapshotVersion = t.version
	for _, p := range t.snapshot.GetPolicies() {
		ps := PolicyState{Namespace: p.GetNamespace(), Name: p.GetName(), UID: p.GetUid(), Generation: p.GetGeneration(), Limits: []LimitState{}}
		for _, in := range p.GetLimits() {
			ps.Limits = append(ps.Limits, t.byID[in.GetId()].state(in, now))
		}
		out.Policies = append(out.Policies, ps)
	}
	return out
}

func (l *Limit) state(in *quotav1.Limit, now limiter.Time) LimitState {
	s := LimitState{
		ID:            l.id,
		Name:          l.name,
		Variant:       in.GetVariant().GetName(),
		Shadow:        l.shadow,
		Scope:         l.scope.String(),
		Requests:      in.GetRate().GetRequests(),
		Period:        time.Duration(in.GetRate().GetPeriodNanoseconds()).String(),
		Burst:         in.GetBurst(),
		ShareUnits:    l.units,
		ShareFraction: float64(l.units) / float64(quotav1.Whole),
		RatePerSecond: l.shareRate.PerSecond(),
		ShareBurst:    number(l.shareBurst),
		Allowed:       l.account.allowed.requests(),
		Denied:        l.account.denied.requests(),
		AllowedCost:   l.account.allowed.cost.Load(),
		DeniedCost:    l.account.denied.cost.Load(),
	}
	if l.mayWait() {
		waiting, held := l.account.waits()
		s.Waiting, s.Held = &waiting, &held
	}
	if l.account.flight != nil {
		total, keys := l.account.flight.total(), l.account.flight.keys()
		s.InFlight = &total
		if len(l.key) > 0 {
			s.Keys = &keys
		}
		return s
	}
	if l.account.lent != nil {
		l.account.lent.state(&s, l, now)
		return s
	}
	if l.account.keyed != nil {
		keys := l.account.keyed.LenAt(now)
		s.Keys = &keys
		s.SharedKeys = l.account.keyed.Strict()
	} else {
		balance := number(l.account.bucket.PeekAt(now, 0).Remaining)
		s.Balance = &balance
	}
	return s
}

// Label names the limit in metrics: its name, or name/variant.
func (s *LimitState) Label() string {
	if s.Variant == "" {
		return s.Name
	}
	return s.Name + "/" + s.Variant
}

func number(t limiter.Tokens) float64 { return float64(t) / float64(limiter.Token) }
