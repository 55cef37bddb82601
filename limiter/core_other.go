// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && amd64)

package limiter

// core has nothing to read here.
func core() int { return 0 }

// trustCore reports that there are no cores' numbers to use here.
func trustCore() bool { return false }
