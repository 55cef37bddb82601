// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// Decision is the answer to one request.
type Decision struct {
	// Allowed tells whether all limits that count the request granted it. If not, none of them lost a token.
	Allowed bool
	// Unavailable tells that there was nothing to decide by: no snapshot has arrived yet, or the process has given its
	// quota back. It is not a denial.
	Unavailable bool
	// Err is why the request could not be decided as it was asked: ErrNumbers. It is not a denial.
	Err error
	// Denied are the limits that denied.
	Denied []*Limit
	// Refusal is why the first of them denied without asking for tokens; 0 where it asked.
	Refusal Refusal
	// RetryAfter is how long until all of them would grant, if nobody else asked; limiter.Never when waiting alone does
	// not help. 0 when the request was allowed, or nobody knows.
	RetryAfter time.Duration
	// WouldDeny are the limits in shadow mode that would have denied the request.
	WouldDeny []*Limit
	// Tightest is the limit that says most of where the client stands: of those that denied the one to wait for longest, else
	// the one with the least left. nil when none counted the request.
	Tightest *Limit
	// Limit and Remaining are the tightest limit's most and present tokens in this pod.
	Limit, Remaining limiter.Tokens
	// Ticket is what the request owes until it is over; nil when nothing.
	Ticket *Ticket
	// Response says how clients are answered; nil for the defaults.
	Response *quotav1.Response

	longest time.Duration // the tightest limit's wait, while it is looked for
}

// Refusal is why a limit denied a request without asking for tokens.
type Refusal int

const (
	// KeyMissing is a request that lacks a part of the key, where that is denied.
	KeyMissing Refusal = iota + 1
	// CostTooHigh is a request that costs more than the limit can ever admit.
	CostTooHigh
)

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
	if !answer.Allowed {
		d.deny(l, answer.RetryAfter)
	}
	tighter := d.Tightest == nil || answer.Remaining < d.Remaining
	if len(d.Denied) > 0 {
		// Where the client stands is told by a limit that denied.
		tighter = !answer.Allowed && (len(d.Denied) == 1 || answer.RetryAfter > d.longest)
	}
	if tighter {
		d.Tightest, d.Limit, d.Remaining, d.longest = l, answer.Limit, answer.Remaining, answer.RetryAfter
	}
}

// refuse adds a limit that denies without asking for tokens.
func (d *Decision) refuse(m match) {
	if d.Refusal == 0 {
		d.Refusal = m.refused
	}
	d.deny(m.limit, limiter.Never)
	d.Tightest, d.longest = m.limit, limiter.Never
	d.Limit = m.limit.shareBurst
}

func (d *Decision) deny(l *Limit, wait time.Duration) {
	d.Allowed = false
	d.RetryAfter = max(d.RetryAfter, wait)
	if d.Denied == nil {
		d.Denied = l.alone
	} else {
		d.Denied = append(slices.Clip(d.Denied), l) // alone stays as it is
	}
}
