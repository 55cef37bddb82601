// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// cores returns how many cores this machine numbers, if core tells on which of them it runs; else 0.
var cores = sync.OnceValue(func() int {
	if !trustCore() {
		return 0
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	return highest(string(online)) + 1
})

// highest is the last number of a list as the kernel writes it ("0-3,8-11"), -1 if it is none.
func highest(list string) int {
	list = strings.TrimSpace(list)
	n, err := strconv.ParseUint(list[strings.LastIndexAny(list, ",-")+1:], 10, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
