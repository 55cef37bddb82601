// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
)

// Ticket is what an admitted request still owes: word of its true cost, or of its end. Most requests have none.
//
// The door calls Answered with the header of the application's answer, again with the trailer where there is one, and End
// once when the request is over, however it ends. The methods may be called by different goroutines, one after the other.
type Ticket struct {
	owed []owing
	over atomic.Bool
}

// owing is what is owed to one limit.
type owing struct {
	account  *account
	hash     uint64
	cost     uint64 // taken
	response *responseCost
	settled  bool
}

// Answered settles the costs that the answer's header, or its trailer, tells. A cost that it does not tell stays as it was
// estimated. The ticket may be nil.
func (t *Ticket) Answered(h Header, now limiter.Time) {
	if t == nil || h == nil {
		return
	}
	for i := range t.owed {
		o := &t.owed[i]
		if o.response == nil || o.settled {
			continue
		}
		lines := h.Values(o.response.header)
		if len(lines) == 0 {
			continue
		}
		actual, ok := readActual(lines[0])
		if !ok {
			continue
		}
		o.settled = true
		o.account.settle(now, o.hash, o.cost, actual, o.response.debt)
		o.account.allowed.correct(o.cost, actual)
	}
}

// End ends the request. The ticket may be nil.
func (t *Ticket) End() {
	if t == nil || t.over.Swap(true) {
		return
	}
	for i := range t.owed {
		if o := &t.owed[i]; o.account.flight != nil {
			o.account.flight.release(o.hash, o.cost)
		}
	}
}

// Wants reports whether the answer's header is of use, so that a door need not parse it otherwise. The ticket may be nil.
func (t *Ticket) Wants() bool {
	if t == nil {
		return false
	}
	for i := range t.owed {
		if t.owed[i].response != nil && !t.owed[i].settled {
			return true
		}
	}
	return false
}

// readActual reads the cost that an answer tells. It may be 0: nothing was used.
func readActual(line string) (uint64, bool) {
	value, err := strconv.ParseFloat(strings.Trim(line, " \t"), 64)
	if err != nil || math.IsNaN(value) || value < 0 || math.IsInf(value, 0) {
		return 0, false
	}
	return uint64(math.Ceil(min(value, float64(maxCost)))), true
}
