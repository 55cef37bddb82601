// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"runtime"
	"time"
)

// spins is how often a held word is looked at before the goroutine lets others run. A word is held for nanoseconds, unless its holder was
// preempted.
const spins = 16

// pause is called while a word or lock of another goroutine stands in the way.
func pause(try int) {
	if try%spins == spins-1 {
		runtime.Gosched()
	}
}

// duration converts nanoseconds, saturating.
func duration(ns uint64) time.Duration { return time.Duration(min(ns, uint64(Never))) }
