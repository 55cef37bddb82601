// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package loop

func newPoller(l *Loop, _ Portable) (poller, error) { return newGoroutines(l), nil }
