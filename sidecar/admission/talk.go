// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/limiter/escrow"
)

// Adopt follows a leader, welcomed at a time of its clock, from now on refusing what older ones lend. The next Report says
// hello.
func (e *Engine) Adopt(epoch uint64, sent int64, now limiter.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.welcome = escrow.Welcome{Epoch: epoch, Sent: sent}
	for _, a := range e.adaptives() {
		a.adopt(e.welcome, now)
	}
	e.linked.Store(true)
	signal(e.calls)
}

func (a *adaptive) adopt(w escrow.Welcome, now limiter.Time) {
	if w.Epoch == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sleeper.Welcome(w, int64(now))
	a.said = false
}

// Lost notes that nobody hears this process: no promise is made until the next Adopt.
func (e *Engine) Lost() { e.linked.Store(false) }

// Drain says in the next Report that this process serves on and wants no larger share.
func (e *Engine) Drain() {
	for _, a := range e.adaptives() {
		a.mu.Lock()
		a.sleeper.Drain()
		a.mu.Unlock()
	}
	signal(e.calls)
}

// Report returns what is to be said to the leader now, nil for nothing. What it says must be sent.
func (e *Engine) Report(now limiter.Time) *quotav1.Report {
	var r *quotav1.Report
	for _, a := range e.adaptives() {
		epoch, l := a.report(now)
		if l == nil {
			continue
		}
		if r == nil {
			r = &quotav1.Report{Epoch: epoch}
		}
		r.Limits = append(r.Limits, l)
	}
	return r
}

func (a *adaptive) report(now limiter.Time) (epoch uint64, l *quotav1.LimitReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	epoch = a.sleeper.Epoch()
	if epoch == 0 {
		return 0, nil
	}
	l = &quotav1.LimitReport{LimitId: a.id, Hello: !a.said}
	if !a.said {
		l.Beat = beatOf(a.sleeper.Hello(int64(now)))
		a.all(func(t *tab) {
			l.Claims = append(l.Claims, claimOf(t.key, a.one != nil, t.holder.Registration(int64(now))))
		})
		a.said = true
	} else {
		if b, ok := a.sleeper.Beat(int64(now)); ok {
			l.Beat = beatOf(b)
		}
		a.all(func(t *tab) {
			if c, ok := t.holder.Claim(int64(now)); ok {
				l.Claims = append(l.Claims, claimOf(t.key, a.one != nil, c))
			}
		})
	}
	a.enforce(now) // a promise to sleep is kept before it leaves
	if l.Beat == nil && len(l.Claims) == 0 {
		return epoch, nil
	}
	return epoch, l
}

// Final is the last report: all that is borrowed and not spent goes back. It comes after Stop.
func (e *Engine) Final(now limiter.Time) *quotav1.Report {
	e.mu.Lock()
	t := e.last
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	r := &quotav1.Report{}
	for _, a := range t.lent {
		a.mu.Lock()
		l := &quotav1.LimitReport{LimitId: a.id}
		r.Epoch = a.sleeper.Epoch()
		a.all(func(t *tab) { l.Claims = append(l.Claims, claimOf(t.key, a.one != nil, t.holder.Final(int64(now)))) })
		a.mu.Unlock()
		r.Limits = append(r.Limits, l)
	}
	return r
}

// Grant takes in what the leader lends, and serves those who wait with it. What cannot be is refused, and said.
func (e *Engine) Grant(g *quotav1.Grant, now limiter.Time) error {
	t := e.table.Load()
	if t == nil {
		return nil
	}
	var refused error
	for _, l := range g.GetLimits() {
		limit := t.limit(l.GetLimitId())
		if limit == nil || limit.account.lent == nil {
			continue // of a snapshot that is on its way, or was
		}
		verdicts, elsewhere, err := limit.account.lent.grant(g.GetEpoch(), l, now)
		if err != nil {
			refused = fmt.Errorf("grant of limit %q: %w", limit.id, err)
		}
		e.deliver(verdicts, now)
		e.move(elsewhere, now)
	}
	signal(e.calls)
	return refused
}

func (a *adaptive) grant(epoch uint64, g *quotav1.LimitGrant, now limiter.Time) (verdicts []verdict, elsewhere []*Held, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.GetOrder() != nil {
		o, err := order(epoch, g.GetOrder(), a.keys != nil)
		if err != nil {
			return nil, nil, err
		}
		a.sleeper.Order(o, int64(now))
		a.enforce(now)
	}
	serve := func(t *tab) {
		out, moved := t.serve(now, verdicts)
		verdicts, elsewhere = out, append(elsewhere, moved...)
	}
	for _, l := range g.GetLoans() {
		t := a.one
		if t == nil {
			t = a.byKey(l.GetKey())
		}
		if t != nil {
			if l.GetScarce() {
				t.scarce = now
			}
			t.holder.Loan(escrow.Loan{Epoch: epoch, Born: l.GetBorn(), Granted: l.GetGranted(), Recall: l.GetRecall(), Scarce: l.GetScarce()})
			serve(t)
		}
	}
	return verdicts, elsewhere, nil
}

// byKey finds a tab by what stands for its key on the wire. There are few loans, and few tabs.
func (a *adaptive) byKey(key []byte) *tab {
	for _, t := range *a.tabs.Load() {
		if string(t.key[:]) == string(key) {
			return t
		}
	}
	return nil
}

// order checks the numbers of an order.
func order(epoch uint64, o *quotav1.Order, hasKey bool) (escrow.Order, error) {
	rate := o.GetRate()
	switch {
	case rate.GetRequests() < 1 || rate.GetRequests() > 1e12 || rate.GetPeriodNanoseconds() < 1 || rate.GetPeriodNanoseconds() > math.MaxInt64:
		return escrow.Order{}, fmt.Errorf("rate of %d requests per %d ns", rate.GetRequests(), rate.GetPeriodNanoseconds())
	case o.GetBurst() < 1 || o.GetBurst() > 1e9 || o.GetMaxCost() > 1e9:
		return escrow.Order{}, fmt.Errorf("burst of %d, cost of %d", o.GetBurst(), o.GetMaxCost())
	case o.GetStand() < 0 || o.GetStand() > int64(o.GetBurst()):
		return escrow.Order{}, fmt.Errorf("%d tokens to stand by of a burst of %d", o.GetStand(), o.GetBurst())
	case o.GetUnits() > escrow.Whole:
		return escrow.Order{}, fmt.Errorf("share of %d units", o.GetUnits())
	}
	return escrow.Order{
		Epoch: epoch, Sent: o.GetSent(), Heard: o.GetHeard(), Seq: o.GetSeq(), Units: o.GetUnits(), Awake: o.GetAwake(), Stay: o.GetStay(),
		Stand: o.GetStand(),
		Limit: escrow.Limit{
			Requests: rate.GetRequests(), Period: rate.GetPeriodNanoseconds(),
			Burst: int64(o.GetBurst()), MaxCost: int64(o.GetMaxCost()), Keyed: hasKey,
		},
	}, nil
}

func beatOf(b escrow.Beat) *quotav1.Beat {
	return &quotav1.Beat{
		Sent: b.Sent, Heard: b.Heard, Promise: b.Promise, Acked: b.Acked, Units: b.Units, Awake: b.Awake, Draining: b.Draining, Busy: b.Busy,
		Kept: &b.Kept,
	}
}

func claimOf(key KeyHash, only bool, c escrow.Claim) *quotav1.Claim {
	out := &quotav1.Claim{
		Sent: c.Sent, Born: c.Born, Granted: c.Granted, Spent: c.Spent, Returned: c.Returned, Want: c.Want, Least: c.Least, Idle: c.Idle,
	}
	if !only {
		out.Key = key[:]
	}
	return out
}
