// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import "golang.org/x/sys/unix"

// Boottime is CLOCK_BOOTTIME in nanoseconds: monotonic, and it goes on while the machine sleeps, so that a lease is never
// believed for longer than it lasts.
func Boottime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("quota: CLOCK_BOOTTIME: " + err.Error()) // there since Linux 2.6.39
	}
	return ts.Nano()
}
