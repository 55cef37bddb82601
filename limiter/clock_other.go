// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && amd64)

package limiter

// readCycles has nothing to read here.
func readCycles() uint64 { return 0 }

// trustCycles reports that there is no cycle counter to use here.
func trustCycles() bool { return false }
