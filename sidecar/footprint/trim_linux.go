// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Trim lets go of the pages of the program's own file: code and constants, which never change. Those that are used come back
// from the page cache when they are; the rest no longer counts as this process's. It is for when the start is over.
func Trim() error {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("own mappings: %w", err)
	}
	defer func() { _ = maps.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || fields[5] != name || strings.Contains(fields[1], "w") {
			continue // what has been written to would be lost
		}
		var begin, end uintptr
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &begin, &end); err != nil {
			return fmt.Errorf("own mapping %q: %w", fields[0], err)
		}
		// The address is that of a mapping which lives as long as the process.
		pages := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&begin))), end-begin)
		if err := unix.Madvise(pages, unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("let go of own pages: %w", err)
		}
	}
	return nil
}
