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
	base  *Limit // that matched; limit is one of its variants, or itself
	from  int    // which of several descriptions of the request it counts
	hash  uint64
	cost  uint64
	// refused says that the limit denies the request without asking its account.
	refused Refusal
	// first says that the request has waited for this limit's tokens, and that its turn has come.
	first bool
	// served says that the lines are being served, and their lock is held.
	served bool
}

// Decide takes a request's cost from every limit that counts it, or from none. It never waits.
func (e *Engine) Decide(r *Request, now limiter.Time) Decision {
	return e.DecideAll([]*Request{r}, now)
}

// DecideAll decides several descriptions of one request together: what any limit takes for any of them is taken for all, or
// nothing is.
func (e *Engine) DecideAll(requests []*Request, now limiter.Time) Decision {
	d, _ := e.decideOrHold(requests, now, nil)
	return d
}

// find appends the limits that count a request, in any of its descriptions.
func (e *Engine) find(t *table, requests []*Request, matches []match, now limiter.Time) ([]match, error) {
	for i, r := range requests {
		from := len(matches)
		matches = e.findOne(t, r, i, matches)
		if err := e.replace(matches[from:], r.Instead, now); err != nil {
			return nil, err
		}
	}
	return matches, nil
}

func (e *Engine) findOne(t *table, request *Request, from int, matches []match) []match {
	r := read(request)
	var room [4 * fewLimits]int
	for _, i := range t.index.find(&r, len(t.bases), room[:0]) {
		if l := t.bases[i]; l.applies(&r) {
			if m, counts := e.match(l, &r); counts {
				m.from = from
				matches = append(matches, m)
			}
		}
	}
	return matches
}

// replace puts a client's own numbers in the place of the limits'.
func (e *Engine) replace(matches []match, n *Numbers, now limiter.Time) error {
	if n == nil {
		return nil
	}
	for i := range matches {
		other, err := matches[i].limit.by(*n, e.options.Keys, now)
		if err != nil {
			return err
		}
		matches[i].limit = other
		if matches[i].refused == 0 && matches[i].cost > other.mostEver() {
			matches[i].refused = CostTooHigh
		}
	}
	return nil
}

// match reads the request's key and cost for a limit that applies. It reports whether the limit counts the request at all.
func (e *Engine) match(base *Limit, r *reading) (match, bool) {
	m := match{limit: base, base: base}
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

// take takes from all limits that enforce, or from none: what can be given back exactly first (what ends by itself, and what is
// lent), and the rest of the tokens in one step.
func (d *Decision) take(matches []match, enforcing int, now limiter.Time) {
	if enforcing == 1 {
		for i := range matches {
			if m := &matches[i]; !m.limit.shadow {
				d.note(m.limit, m.limit.account.take(now, m))
			}
		}
		return
	}
	var room [few]limiter.Charge
	var ways [few]way
	charges, taken := room[:0], ways[:0]
	for i := range matches {
		m := &matches[i]
		w, answer := way{}, limiter.Decision{}
		switch a := m.limit.account; {
		case m.limit.shadow:
		case a.flight != nil && d.Allowed:
			answer = a.flight.acquire(m.hash, m.cost)
			w.acquired = answer.Allowed
			d.note(m.limit, answer)
		case a.flight != nil:
		case a.lent != nil:
			answer, w.tab, w.charge = a.lent.reserve(now, m)
			if !answer.Allowed || w.tab != nil {
				d.note(m.limit, answer)
			}
		default:
			var waits bool
			if answer, waits = a.behind(now, m); waits {
				d.note(m.limit, answer)
				break
			}
			w.charge = a.charge(m.hash, m.cost)
			answer.Allowed = true
		}
		w.charged = answer.Allowed && !w.acquired && w.tab == nil
		if w.charged {
			charges = append(charges, w.charge)
		}
		taken = append(taken, w)
	}
	if d.Allowed && len(charges) > 0 {
		limiter.AllAt(now, charges)
		next := 0
		for i := range matches {
			if taken[i].charged {
				d.note(matches[i].limit, charges[next].Decision)
				next++
			}
		}
	}
	for i := range matches {
		taken[i].end(&matches[i], d.Allowed)
	}
}

// way is how one limit's part of a decision over several is taken.
type way struct {
	acquired bool // under way already, to be released
	tab      *tab // set apart, to be cancelled or committed
	charged  bool // taken with the others
	charge   limiter.Charge
}

func (w *way) end(m *match, allowed bool) {
	switch {
	case w.acquired && !allowed:
		m.limit.account.flight.release(m.hash, m.cost)
	case w.tab != nil && allowed:
		w.tab.commit(m.cost)
	case w.tab != nil:
		w.tab.cancel(m.cost)
	}
}

// watch lets limits that only look on count an admitted request, each for itself.
func (d *Decision) watch(matches []match, now limiter.Time) {
	for i := range matches {
		m := &matches[i]
		if !m.limit.shadow {
			continue
		}
		if m.refused != 0 || !m.limit.account.take(now, m).Allowed {
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

// count counts the request's cost as allowed at all limits, or as denied at those that denied and undecided at the others.
func count(matches []match, d *Decision) {
	for _, m := range matches {
		switch {
		case slices.Contains(d.Denied, m.limit), slices.Contains(d.WouldDeny, m.limit):
			m.limit.account.denied.add(m.cost)
		case d.Allowed:
			m.limit.account.allowed.add(m.cost)
		default:
			m.limit.account.undecided.add(m.cost)
		}
	}
}

// record records a decision on accounts, whose keys are known by hashes that are the same in every process.
func (e *Engine) record(matches []match, hashes []KeyHash, d *Decision, now limiter.Time) {
	// The limiter takes an instant before the last change of the numbers for that of the change.
	now = max(now, limiter.Time(e.changed.Load()))
	for i := range matches {
		m := &matches[i]
		if !m.limit.recorded() || !d.Allowed && !slices.Contains(d.Denied, m.limit) {
			continue
		}
		at := now
		if a := m.limit.account.lent; a != nil {
			at = max(at, limiter.Time(a.stamp.Load())) // nor before the tokens were there
		}
		e.options.Recorder.Decision(int64(at), m.limit.id, hashes[i], m.cost, d.Allowed)
	}
}

// recorded reports whether the policy's rate and burst bound what the limit admits, so that its records can be judged by them:
// not where it denies nothing, counts what is under way, judges by a client's own numbers, or learns the cost afterwards.
func (l *Limit) recorded() bool {
	return !l.shadow && !l.concurrency && !l.borrowed && l.cost.response == nil
}

// hashes names the accounts of a request.
func hashes(matches []match, requests []*Request) []KeyHash {
	out := make([]KeyHash, len(matches))
	for i := range matches {
		out[i] = matches[i].name(requests)
	}
	return out
}

// name is that of the account, the same in every process. It allocates.
func (m *match) name(requests []*Request) KeyHash {
	r := read(requests[m.from])
	m.base.matched(&r) // leaves the template's variables
	return stableHash(m.base.key, &r)
}
