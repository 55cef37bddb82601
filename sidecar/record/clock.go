// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import "golang.org/x/sys/unix"

// Now reads CLOCK_BOOTTIME, which all processes of a machine share and which does not stop in suspend.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// Linux has had this clock since 2.6.39; without it records would be worthless.
		panic("reading CLOCK_BOOTTIME: " + err.Error())
	}
	return t.Nano()
}
