// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
)

// Held is a request that waits, for some milliseconds, for tokens that are on their way. It holds none meanwhile.
type Held struct{ over atomic.Bool }

// Cancel takes the request back: its client has gone. It reports whether it came in time, in which case the decision is
// not delivered any more and nothing is taken. It may be called from any goroutine and waits for nothing.
func (h *Held) Cancel() bool { return h.over.CompareAndSwap(false, true) }

// DecideOrHold decides at once where that can be done, and returns nil beside the decision: where the tokens are at hand,
// and where waiting is of no use. Otherwise it returns a Held and a decision without meaning, and calls then once with the
// decision, some milliseconds later at most, unless the Held is cancelled before.
//
// It never waits itself, and allocates only when it holds. then is called by another goroutine, which decides for all other
// held requests as well: it must be quick and must not block (an event loop puts the decision in a queue and writes to an
// eventfd; a goroutine is sent a value through a channel with room for it). It may be called before DecideOrHold has
// returned. r and what it points to are not used after the return.
func (e *Engine) DecideOrHold(r *Request, now limiter.Time, _ func(Decision)) (Decision, *Held) {
	return e.Decide(r, now), nil
}

// DecideWait is DecideOrHold for a goroutine that has nothing else to do. When the context ends first the request is taken
// back, and ok is false.
func (e *Engine) DecideWait(ctx context.Context, r *Request, now limiter.Time) (d Decision, ok bool) {
	answer := make(chan Decision, 1)
	d, held := e.DecideOrHold(r, now, func(d Decision) { answer <- d })
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
