// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"

	"github.com/headgate/headgate/limiter"
)

// DecideOrHold decides at once where that can be done, and returns nil beside the decision: where the tokens are at hand,
// and where waiting is of no use. Otherwise it returns a Held and a decision without meaning, and calls then once with the
// decision, some milliseconds later at most (Options.Hold), unless the Held is cancelled before. Without then nothing is held.
//
// It never waits itself, and allocates only when it holds. then is called by another goroutine, which decides for all other
// held requests as well: it must be quick and must not block (an event loop puts the decision in a queue and writes to an
// eventfd; a goroutine is sent a value through a channel with room for it). It may be called before DecideOrHold has
// returned. r and what it points to are not used after the return.
func (e *Engine) DecideOrHold(r *Request, now limiter.Time, then func(Decision)) (Decision, *Held) {
	return e.decideOrHold([]*Request{r}, now, then)
}

func (e *Engine) decideOrHold(requests []*Request, now limiter.Time, then func(Decision)) (Decision, *Held) {
	for {
		t := e.table.Load()
		if t == nil {
			return Decision{Unavailable: true}, nil
		}
		var room [few]match
		matches, err := e.find(t, requests, room[:0], now)
		if err != nil {
			return Decision{Err: err}, nil
		}
		d := decide(matches, now)
		if m := waitsFor(matches, &d); m != nil {
			if e.seek(matches, d.Denied, requests, now) {
				d = decide(matches, now)
				m = waitsFor(matches, &d)
			}
			if m != nil && then != nil {
				if h := e.hold(t, matches, m, requests, now, then); h != nil {
					return Decision{}, h
				}
			}
		}
		// If the table has changed, the tokens were taken from accounts that may no longer be in force, or not from ones
		// that now are. They stay taken, which errs on the strict side, and the request is decided anew.
		if e.table.Load() != t {
			d.Ticket.End()
			continue
		}
		if len(d.WouldDeny) > 0 {
			e.seek(matches, d.WouldDeny, requests, now) // who only looks on borrows, and never waits
		}
		d.Response = t.snapshot.GetResponse()
		var names []KeyHash
		if e.options.Recorder != nil {
			names = hashes(matches, requests)
		}
		e.conclude(matches, names, &d, now)
		return d, nil
	}
}

// hold lets a request wait for the tokens of a match, or returns nil where that is of no use.
func (e *Engine) hold(t *table, matches []match, m *match, requests []*Request, now limiter.Time, then func(Decision)) *Held {
	soon, until := e.patience(m.limit)
	h := &Held{table: t, matches: slices.Clone(matches), soon: now.Add(soon), until: now.Add(until), then: then}
	if e.options.Recorder != nil {
		h.hashes = hashes(matches, requests)
	}
	if !e.wait(h, m, now) {
		return nil
	}
	return h
}

// DecideWait is DecideOrHold for a goroutine that has nothing else to do, and for several descriptions of one request (see
// DecideAll). When the context ends first the request is taken back, and ok is false.
func (e *Engine) DecideWait(ctx context.Context, now limiter.Time, requests ...*Request) (d Decision, ok bool) {
	answer := make(chan Decision, 1)
	d, held := e.decideOrHold(requests, now, func(d Decision) { answer <- d })
	if held == nil {
		return d, true
	}
	select {
	case d = <-answer:
		return d, true
	case <-ctx.Done():
	}
	if held.Cancel() {
		return Decision{}, false
	}
	return <-answer, true
}
