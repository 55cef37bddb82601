// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// procStat is what this program needs of /proc/<pid>/stat.
type procStat struct {
	state   byte
	threads int
	start   uint64 // in clock ticks since boot
}

// leaderEnded is true for a zombie; other threads may still be on their way out.
func (s procStat) leaderEnded() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (procStat, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(content)
}

// parseStat starts after the second field, the command's name: it may hold
// spaces and parentheses itself.
func parseStat(content []byte) (procStat, error) {
	end := bytes.LastIndexByte(content, ')')
	if end < 0 {
		return procStat{}, errors.New("stat: no command name")
	}
	// Fields 3, 20 and 22 of proc(5), counted from field 3.
	const stateField, threadsField, startField = 0, 17, 19
	fields := strings.Fields(string(content[end+1:]))
	if len(fields) <= startField {
		return procStat{}, errors.New("stat: too few fields")
	}
	threads, err := strconv.Atoi(fields[threadsField])
	if err != nil {
		return procStat{}, fmt.Errorf("stat: threads: %w", err)
	}
	start, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("stat: start time: %w", err)
	}
	return procStat{fields[stateField][0], threads, start}, nil
}
