// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"github.com/headgate/headgate/limiter"
)

// Explanation says what would happen to a request now, and why. Nothing is taken.
type Explanation struct {
	SnapshotVersion string `json:"snapshotVersion"`
	// Verdict is "admitted", "denied" or "held".
	Verdict string `json:"verdict"`
	// RetryAfterSeconds is when the same request would be admitted, if it is denied and anybody knows.
	RetryAfterSeconds float64            `json:"retryAfterSeconds,omitempty"`
	Limits            []LimitExplanation `json:"limits"`
}

// LimitExplanation is what one limit makes of a request.
type LimitExplanation struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy"`
	Limit     string `json:"limit"`
	// Variant names the override or the tier whose numbers count.
	Variant string `json:"variant,omitempty"`
	// Counts tells whether the limit counts the request, and Why says why not, or why it would be denied.
	Counts bool   `json:"counts"`
	Why    string `json:"why,omitempty"`
	// Key are the values of the key's parts, in order.
	Key  []string `json:"key,omitempty"`
	Cost uint64   `json:"cost,omitempty"`
	// Would is "admit", "deny" or "hold".
	Would  string `json:"would,omitempty"`
	Shadow bool   `json:"shadow,omitempty"`
	// Remaining is what this pod has at hand for the key, of Most.
	Remaining         float64 `json:"remaining"`
	Most              float64 `json:"most"`
	RetryAfterSeconds float64 `json:"retryAfterSeconds,omitempty"`
}

// What would happen.
const (
	WouldAdmit = "admit"
	WouldDeny  = "deny"
	WouldHold  = "hold"
)

// Explain says of every limit in force what it makes of a request, without taking anything. ok is false before there is a
// snapshot.
func (e *Engine) Explain(request *Request, now limiter.Time) (x Explanation, ok bool) {
	t := e.table.Load()
	if t == nil {
		return Explanation{}, false
	}
	x = Explanation{SnapshotVersion: t.version, Verdict: "admitted", Limits: []LimitExplanation{}}
	for _, base := range t.bases {
		r := read(request)
		l := e.explain(base, &r, now)
		if l.Counts && !l.Shadow {
			switch {
			case l.Would == WouldDeny:
				x.Verdict = "denied"
			case l.Would == WouldHold && x.Verdict == "admitted":
				x.Verdict = "held"
			}
			if l.Would != WouldAdmit {
				x.RetryAfterSeconds = max(x.RetryAfterSeconds, l.RetryAfterSeconds)
			}
		}
		x.Limits = append(x.Limits, l)
	}
	return x, true
}

func (e *Engine) explain(base *Limit, r *reading, now limiter.Time) LimitExplanation {
	x := LimitExplanation{Namespace: base.namespace, Policy: base.policy, Limit: base.name, Shadow: base.shadow}
	if x.Why = base.why(r); x.Why != "" {
		return x
	}
	for i := range base.key {
		text, address, ok := base.key[i].value(r)
		if base.key[i].address != nil && ok {
			text = address.String()
		}
		if !ok {
			text = "(missing)"
		}
		x.Key = append(x.Key, text)
	}
	m, counts := e.match(base, r)
	if !counts {
		x.Why = "the request lacks a part of the key"
		return x
	}
	l := m.limit
	x.Counts, x.Cost, x.Variant, x.Would = true, m.cost, l.variant.GetName(), WouldAdmit
	switch m.refused {
	case KeyMissing:
		x.Why, x.Would = "the request lacks a part of the key, and onMissingKey is Deny", WouldDeny
		return x
	case CostTooHigh:
		x.Why, x.Would = "the request costs more than the limit can ever admit at once", WouldDeny
		return x
	}
	d := l.account.look(now, &m)
	x.Remaining, x.Most = number(d.Remaining), number(d.Limit)
	if d.Allowed {
		return x
	}
	x.Would, x.Why = WouldDeny, "too few tokens are left in this pod"
	if l.mayWait() && (l.account.lent != nil || d.RetryAfter <= l.delay) {
		x.Would, x.Why = WouldHold, "it waits for tokens that are lent or earned soon, and is denied when they do not come in time"
	}
	if d.RetryAfter > 0 && d.RetryAfter != limiter.Never {
		x.RetryAfterSeconds = d.RetryAfter.Seconds()
	}
	return x
}

// why says why a limit does not count a request; nothing where it does.
func (l *Limit) why(r *reading) string {
	switch {
	case !l.matched(r):
		return "no entry of match holds"
	case l.exempt.holds(r):
		return "the policy exempts the request"
	case l.when == nil:
		return ""
	}
	holds, err := l.when.Holds(r.facts())
	switch {
	case err != nil:
		return "when cannot be evaluated: " + err.Error()
	case !holds:
		return "when does not hold"
	}
	return ""
}

// look is what take would answer, with nothing taken.
func (a *account) look(now limiter.Time, m *match) limiter.Decision {
	if d, ok := a.behind(now, m); ok {
		return d
	}
	switch {
	case a.lent != nil:
		return a.lent.look(now, m)
	case a.flight != nil:
		return a.flight.look(m.hash, m.cost)
	case a.keyed != nil:
		return a.keyed.PeekHashAt(now, m.hash, m.cost)
	}
	return a.bucket.PeekAt(now, m.cost)
}

func (a *adaptive) look(now limiter.Time, m *match) limiter.Decision {
	d := a.short(m)
	if a.keys != nil {
		if own := a.keys.PeekHashAt(now, m.hash, m.cost); own.Allowed {
			own.Limit = m.limit.burst
			return own
		}
	}
	if t := a.find(m.hash); t != nil {
		left := t.holder.Purse().Left()
		d.Remaining = limiter.Tokens(left) * limiter.Token
		d.Allowed = left >= int64(m.cost) && !t.waiting.Load()
	}
	return d
}

// look is what acquire would answer.
func (f *flight) look(hash, cost uint64) limiter.Decision {
	s, limit := f.shard(hash), f.limit.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.inUse[hash]
	return limiter.Decision{
		Allowed: used+cost <= limit, Limit: limiter.Tokens(limit) * limiter.Token,
		Remaining: limiter.Tokens(limit-min(used, limit)) * limiter.Token, RetryAfter: time.Duration(0),
	}
}
