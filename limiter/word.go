// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"runtime"
	"sync/atomic"
	"time"
)

// spins is how often a held word is looked at before the goroutine lets others run. A word is held for nanoseconds,
// unless its holder was preempted.
const spins = 16

// pause is called while a word or lock of another goroutine stands in the way.
func pause(try int) {
	if try%spins == spins-1 {
		runtime.Gosched()
	}
}

// duration converts nanoseconds, saturating.
func duration(ns uint64) time.Duration { return time.Duration(min(ns, uint64(Never))) }

// undo takes back a swap of a word from w to m. If somebody has taken more since, it leaves the word as it is, on the
// strict side: the bucket may have been full in between, and then giving the cost back would mint.
func undo(word *atomic.Uint64, m, w uint64) {
	for try := 0; !word.CompareAndSwap(m, w); try++ {
		if word.Load() != m|held {
			return
		}
		pause(try)
	}
}
