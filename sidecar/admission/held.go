// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/limiter"
)

// Held is a request that waits, for some milliseconds, for tokens that are on their way. It holds none meanwhile.
type Held struct {
	table   *table
	matches []match
	hashes  []KeyHash    // of the matches' keys
	soon    limiter.Time // when it is denied, if none is left
	until   limiter.Time // when it is denied in any case
	then    func(Decision)
	over    atomic.Bool
	lost    bool // what it waited for is gone: it waits nowhere any more
}

// Cancel takes the request back: its client has gone. It reports whether it came in time, in which case the decision is
// not delivered any more and nothing is taken. It may be called from any goroutine and waits for nothing.
func (h *Held) Cancel() bool { return h.over.CompareAndSwap(false, true) }

// move lets a request be decided by another table, where all that counts it goes on with its accounts: an edit of numbers, or
// another pod's coming, ends no wait. It reports whether that is so; the table may be nil.
func (h *Held) move(t *table) bool {
	if h.table == t {
		return true
	}
	for i := range h.matches {
		m := &h.matches[i]
		if l := t.limit(m.limit.id); l == nil || l.account != m.limit.account {
			return false
		}
	}
	for i := range h.matches {
		m := &h.matches[i]
		m.limit, m.base = t.byID[m.limit.id], t.byID[m.base.id]
	}
	h.table = t
	return true
}

// left is the answer to a request that cannot move to a table: what it waited for is gone, and with it what it would be
// decided by.
func (h *Held) left(t *table, m *match) Decision {
	h.lost = true
	d := Decision{}
	if t == nil {
		d.Unavailable = true
		return d
	}
	d.note(m.limit, limiter.Decision{RetryAfter: time.Second, Limit: m.limit.burst})
	return d
}
