// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait between attempts to connect.
type Backoff struct {
	First time.Duration // after the first failure
	Most  time.Duration // never longer
}

// DefaultBackoff spreads ten thousand pods over seconds and has each of them back soon after a new leader is there.
var DefaultBackoff = Backoff{First: 100 * time.Millisecond, Most: 3 * time.Second}

// delay returns the wait before the next attempt after a number of failures in a row: exponential, with the upper half
// of it random, so that pods that lost the same operator do not come back together.
func (b Backoff) delay(failures int, random func() float64) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Most; i++ {
		d *= 2
	}
	d = min(d, b.Most)
	return d/2 + time.Duration(random()*float64(d/2))
}

var random = rand.Float64
