// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"

	"github.com/headgate/headgate/limiter"
)

// few is how many limits may match a request before a decision allocates.
const few = 8

// match is a limit that applies to a request, with the hash of the request's key.
type match struct {
	limit *Limit
	hash  uint64
}

// Decide takes a token from every limit that applies to the request, or from none.
func (e *Engine) Decide(r *Request, now limiter.Time) Decision {
	for {
		t := e.table.Load()
		if t == nil {
			return Decision{Unavailable: true}
		}
		var room [few]match
		matches := e.find(t, r, room[:0])
		d := decide(matches, now)
		// If the table has changed, the tokens were taken from accounts that may no longer be in force, or not from ones
		// that now are. They stay taken, which errs on the strict side, and the request is decided anew.
		if e.table.Load() != t {
			continue
		}
		count(matches, &d)
		if e.options.Recorder != nil {
			// The limiter takes an instant before the last change of the numbers for that of the change.
			e.record(matches, r, &d, max(now, limiter.Time(e.changed.Load())))
		}
		return d
	}
}

// find appends the limits that apply.
func (e *Engine) find(t *table, r *Request, matches []match) []match {
	p := readPath(r.Path)
	for _, l := range t.limits {
		if !l.applies(r, &p) {
			continue
		}
		hash := uint64(0)
		if len(l.key) > 0 {
			var ok bool
			if hash, ok = hashKey(l.key, r, e.seed); !ok {
				continue // the request lacks a part of the key
			}
		}
		matches = append(matches, match{l, hash})
	}
	return matches
}

func decide(matches []match, now limiter.Time) Decision {
	var d Decision
	switch len(matches) {
	case 0:
		d.Allowed = true
	case 1:
		answer := matches[0].limit.account.take(now, matches[0].hash)
		d.Allowed = answer.Allowed
		d.note(matches[0].limit, answer)
	default:
		var room [few]limiter.Charge
		charges := room[:0]
		for _, m := range matches {
			charges = append(charges, m.limit.account.charge(m.hash))
		}
		d.Allowed = limiter.AllAt(now, charges).Allowed
		for i := range charges {
			d.note(matches[i].limit, charges[i].Decision)
		}
	}
	return d
}

// count counts the request as allowed at all limits, or as denied at those that denied.
func count(matches []match, d *Decision) {
	if d.Allowed {
		for _, m := range matches {
			m.limit.account.allowed.Add(cost)
		}
		return
	}
	for _, l := range d.Denied {
		l.account.denied.Add(cost)
	}
}

func (e *Engine) record(matches []match, r *Request, d *Decision, now limiter.Time) {
	for _, m := range matches {
		if d.Allowed || slices.Contains(d.Denied, m.limit) {
			e.options.Recorder.Decision(int64(now), m.limit.id, stableHash(m.limit.key, r), cost, d.Allowed)
		}
	}
}
