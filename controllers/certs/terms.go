// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"time"
)

// Terms say how long certificates last.
type Terms struct {
	// Validity of a certificate that the operator serves.
	Validity time.Duration
	// CAValidity is that of the authority that signs them.
	CAValidity time.Duration
	// Overlap is for how long a new authority is trusted before it signs anything: as long as the slowest kubelet takes to
	// bring a ConfigMap to its pods.
	Overlap time.Duration
}

// Validate reports terms under which a client could meet a certificate that it does not trust.
func (t Terms) Validate() error {
	switch {
	case t.Validity <= 0 || t.CAValidity <= 0 || t.Overlap <= 0:
		return fmt.Errorf("validity %s, authority's validity %s and overlap %s must be above zero", t.Validity, t.CAValidity, t.Overlap)
	case t.Validity > t.CAValidity/3:
		return fmt.Errorf("a certificate that is valid for %s outlives its authority, which is replaced after two thirds of %s: write at most a third", t.Validity, t.CAValidity)
	case t.Overlap > t.CAValidity/6:
		return fmt.Errorf("an overlap of %s leaves an authority that is valid for %s no time: write at most a sixth", t.Overlap, t.CAValidity)
	}
	return nil
}

// lifetime is from when to when something lasts that is made now. It begins a little earlier: clocks differ.
func lifetime(now time.Time, validity time.Duration) (begin, end time.Time) {
	return now.Add(-min(validity/10, 5*time.Minute)), now.Add(validity)
}

// renewal is when the successor of something comes: when two thirds have passed.
func renewal(begin, end time.Time) time.Time {
	return begin.Add(end.Sub(begin) * 2 / 3)
}
