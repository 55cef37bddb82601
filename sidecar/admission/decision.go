// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	"github.com/headgate/headgate/limiter"
)

// cost is what a request takes from each limit that matches it.
const cost = 1

// Decision is the answer to one request.
type Decision struct {
	// Allowed tells whether all limits that match granted the request. If not, none of them lost a token.
	Allowed bool
	// Unavailable tells that there was nothing to decide by: no snapshot has arrived yet, or the process has given its
	// quota back. It is not a denial.
	Unavailable bool
	// Denied are the limits that denied.
	Denied []*Limit
	// RetryAfter is how long until all of them would grant, if nobody else asked; limiter.Never when waiting alone does
	// not help. 0 when the request was allowed.
	RetryAfter time.Duration
	// Tightest is the matching limit with the least left, nil when none matched.
	Tightest *Limit
	// Limit and Remaining are the tightest limit's most and present tokens in this pod.
	Limit, Remaining limiter.Tokens
}

// Names are the names of the limits that denied, as policy/limit. The slice must not be changed.
func (d *Decision) Names() []string {
	if len(d.Denied) == 1 {
		return d.Denied[0].names
	}
	var names []string
	for _, l := range d.Denied {
		names = append(names, l.Name())
	}
	return names
}

// Reset is how long until the tightest limit is full again if nobody else asks: limiter.Never when it never is.
func (d *Decision) Reset() time.Duration {
	if d.Tightest == nil {
		return 0
	}
	return d.Tightest.shareRate.Duration(d.Limit - d.Remaining)
}

// note adds one limit's answer.
func (d *Decision) note(l *Limit, answer limiter.Decision) {
	if d.Tightest == nil || answer.Remaining < d.Remaining {
		d.Tightest, d.Limit, d.Remaining = l, answer.Limit, answer.Remaining
	}
	if !answer.Allowed {
		d.RetryAfter = max(d.RetryAfter, answer.RetryAfter)
		if d.Denied == nil {
			d.Denied = l.alone
		} else {
			d.Denied = append(slices.Clip(d.Denied), l) // alone stays as it is
		}
	}
}
