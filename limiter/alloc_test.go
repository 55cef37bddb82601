// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"
)

func TestNoDecisionAllocates(t *testing.T) {
	const burst = MaxBurst
	b := newBucket(t, 0, PerSecond(1), burst, Full)
	k := newKeyed(t, 0, PerSecond(1), 2*Token, Full, 1000)
	s, _ := NewStripedBucketAt(0, PerSecond(1), burst, Full)
	q := newLeaky(t, 0, PerSecond(1), burst)
	m := newMeter(t, 0, PerSecond(1), burst, burst)
	c := newConcurrency(t, 10)
	w := makeWindowed(t, 1<<20, time.Hour)
	at, name := Time(0), []byte("client-1")
	for what, decide := range map[string]func(){
		"bucket":            func() { b.TakeAt(at, 1) },
		"reservation":       func() { r := b.ReserveAt(at, 1, time.Second); r.Cancel() },
		"key, old and new":  func() { k.TakeHashAt(at, uint64(at), 1); k.TakeHashAt(at, 7, 1) },
		"key given as text": func() { k.TakeAt(at, "client", 1); k.HashBytes(name) },
		"all": func() {
			parts := [...]Charge{b.Charge(1), k.Charge(uint64(at)*31, 1), k.Charge(9, 1)}
			AllAt(at, parts[:])
		},
		"striped bucket": func() { s.AllowAt(at, 1); s.TakeAt(at, 100) },
		"queue":          func() { q.TakeAt(at, 1) },
		"meter":          func() { m.MarkAt(at, 1, Green) },
		"concurrency":    func() { c.Acquire(1); c.Release(1) },
		"fixed window":   func() { w["fixed window"].TakeAt(at, 1) },
		"sliding window": func() { w["sliding window"].TakeAt(at, 1) },
		"sliding log":    func() { w["sliding log"].TakeAt(at, 1) },
	} {
		if n := testing.AllocsPerRun(500, func() { at += second / 100; decide() }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
