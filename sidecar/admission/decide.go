// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// few is how many limits may match a request before a decision allocates.
const few = 8

// match is a limit that counts a request, with the hash of the request's key and what the request costs there.
type match struct {
	limit *Limit
	hash  uint64
	cost  uint64
	// refused says that the limit denies the request without asking its account.
	refused Refusal
}

// Decide takes a request's cost from every limit that counts it, or from none.
func (e *Engine) Decide(r *Request, now limiter.Time) Decision {
	return e.DecideAll([]*Request{r}, now)
}

// DecideAll decides several descriptions of one request together: what any limit takes for any of them is taken for all, or
// nothing is.
func (e *Engine) DecideAll(requests []*Request, now limiter.Time) Decision {
	for {
		t := e.table.Load()
		if t == nil {
			return Decision{Unavailable: true}
		}
		var room [few]match
		matches := room[:0]
		for _, r := range requests {
			matches = e.find(t, r, matches)
		}
		d := decide(matches, now)
		d.Response = t.snapshot.GetResponse()
		// If the table has changed, the tokens were taken from accounts that may no longer be in force, or not from ones
		// that now are. They stay taken, which errs on the strict side, and the request is decided anew.
		if e.table.Load() != t {
			d.Ticket.End()
			continue
		}
		count(matches, &d)
		if e.options.Recorder != nil {
			// The limiter takes an instant before the last change of the numbers for that of the change.
			e.record(matches, requests, &d, max(now, limiter.Time(e.changed.Load())))
		}
		return d
	}
}

// find appends the limits that count a request.
func (e *Engine) find(t *table, request *Request, matches []match) []match {
	r := read(request)
	var room [4 * fewLimits]int
	for _, i := range t.index.find(&r, len(t.bases), room[:0]) {
		if l := t.bases[i]; l.applies(&r) {
			if m, counts := e.match(l, &r); counts {
				matches = append(matches, m)
			}
		}
	}
	return matches
}

// match reads the request's key and cost for a limit that applies. It reports whether the limit counts the request at all.
func (e *Engine) match(base *Limit, r *reading) (match, bool) {
	m := match{limit: base}
	if len(base.key) > 0 {
		hash, ok := hashKey(base.key, r, e.seed)
		switch {
		case ok:
			m.hash = hash
		case base.missing == quotav1.MissingKey_DENY:
			m.refused = KeyMissing
		case base.missing == quotav1.MissingKey_SHARED:
			m.hash = sharedKey(e.seed)
		default:
			return m, false
		}
	}
	m.limit = base.choose(r, m.hash)
	m.cost = m.limit.cost.of(r)
	if m.refused == 0 && m.cost > m.limit.mostEver() {
		m.refused = CostTooHigh
	}
	return m, true
}

// decide asks the limits that deny first, and then those that only look on.
func decide(matches []match, now limiter.Time) Decision {
	var d Decision
	d.Allowed = true
	enforcing := 0
	for _, m := range matches {
		if m.limit.shadow {
			continue
		}
		enforcing++
		if m.refused != 0 {
			d.refuse(m)
		}
	}
	if d.Allowed && enforcing > 0 {
		d.take(matches, enforcing, now)
	}
	if d.Allowed {
		d.watch(matches, now)
		d.Ticket = ticket(matches, &d)
	}
	return d
}

// take takes from all limits that enforce, or from none: what ends by itself first, as it can be given back exactly, and the
// tokens in one step.
func (d *Decision) take(matches []match, enforcing int, now limiter.Time) {
	if enforcing == 1 {
		for _, m := range matches {
			if !m.limit.shadow {
				d.note(m.limit, m.limit.account.take(now, m.hash, m.cost))
			}
		}
		return
	}
	var room [few]limiter.Charge
	charges := room[:0]
	acquired := 0
	for i, m := range matches {
		switch {
		case m.limit.shadow:
		case m.limit.account.flight == nil:
			charges = append(charges, m.limit.account.charge(m.hash, m.cost))
		case d.Allowed:
			d.note(m.limit, m.limit.account.flight.acquire(m.hash, m.cost))
			if d.Allowed {
				acquired = i + 1
			}
		}
	}
	if d.Allowed && len(charges) > 0 {
		limiter.AllAt(now, charges)
		next := 0
		for _, m := range matches {
			if !m.limit.shadow && m.limit.account.flight == nil {
				d.note(m.limit, charges[next].Decision)
				next++
			}
		}
	}
	if d.Allowed {
		return
	}
	for _, m := range matches[:acquired] {
		if !m.limit.shadow && m.limit.account.flight != nil {
			m.limit.account.flight.release(m.hash, m.cost)
		}
	}
}

// watch lets limits that only look on count an admitted request, each for itself.
func (d *Decision) watch(matches []match, now limiter.Time) {
	for i := range matches {
		m := &matches[i]
		if !m.limit.shadow {
			continue
		}
		if m.refused != 0 || !m.limit.account.take(now, m.hash, m.cost).Allowed {
			d.WouldDeny = append(d.WouldDeny, m.limit)
		}
	}
}

// ticket is what the request owes once it is admitted, nil where it owes nothing.
func ticket(matches []match, d *Decision) *Ticket {
	var t *Ticket
	for _, m := range matches {
		if m.limit.account.flight == nil && m.limit.cost.response == nil || slices.Contains(d.WouldDeny, m.limit) {
			continue
		}
		if t == nil {
			t = &Ticket{}
		}
		t.owed = append(t.owed, owing{account: m.limit.account, hash: m.hash, cost: m.cost, response: m.limit.cost.response})
	}
	return t
}

// count counts the request's cost as allowed at all limits, or as denied at those that denied.
func count(matches []match, d *Decision) {
	for _, m := range matches {
		switch {
		case slices.Contains(d.Denied, m.limit), slices.Contains(d.WouldDeny, m.limit):
			m.limit.account.denied.add(m.cost)
		case d.Allowed:
			m.limit.account.allowed.add(m.cost)
		}
	}
}

func (e *Engine) record(matches []match, requests []*Request, d *Decision, now limiter.Time) {
	for _, m := range matches {
		if m.limit.shadow || !d.Allowed && !slices.Contains(d.Denied, m.limit) {
			continue
		}
		r := read(requests[0])
		m.limit.matched(&r) // leaves the template's variables
		e.options.Recorder.Decision(int64(now), m.limit.id, stableHash(m.limit.key, &r), m.cost, d.Allowed)
	}
}
