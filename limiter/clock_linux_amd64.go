// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"bytes"
	"os"
)

// readCycles reads the time stamp counter (RDTSC).
//
//go:noescape
func readCycles() uint64

// invariantTSC reports whether the counter runs at a constant rate in all states (CPUID 80000007h, EDX bit 8).
//
//go:noescape
func invariantTSC() bool

// trustCycles reports whether the counter may be used: it is invariant, and the kernel, which watches that it is the
// same on all processors, keeps time by it.
func trustCycles() bool {
	if !invariantTSC() {
		return false
	}
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return err == nil && string(bytes.TrimSpace(source)) == "tsc"
}
