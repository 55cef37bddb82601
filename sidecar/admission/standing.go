// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"github.com/headgate/headgate/limiter"
)

// Standing is where a client stands with the limit that says most of it: the one that denied, else the tightest.
type Standing struct {
	// Limit is the limit's name, as policy/limit.
	Limit string
	// Quota is what the whole limit admits per Window; of a limit of concurrency, at once, and Window is 0.
	Quota  uint64
	Window time.Duration
	// Remaining is what this pod can grant now, in whole tokens.
	Remaining uint64
	// Wait is how long until the denied request would be granted, or until the limit is full again; limiter.Never when
	// nobody knows.
	Wait time.Duration
	// Concurrent tells that the quota counts requests under way.
	Concurrent bool
}

// Standing returns where the client stands, false when no limit counted the request.
func (d *Decision) Standing() (Standing, bool) {
	l := d.Tightest
	if l == nil {
		return Standing{}, false
	}
	s := Standing{Limit: l.Name(), Remaining: d.Remaining.Whole(), Concurrent: l.concurrency}
	if l.concurrency {
		s.Quota, s.Wait = l.mostEver(), limiter.Never
		return s, true
	}
	s.Quota, s.Window = l.declared, l.period
	s.Wait = d.Reset()
	if !d.Allowed {
		s.Wait = d.RetryAfter
	}
	return s, true
}
