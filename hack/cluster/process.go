// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// process names one process for ever: a pid alone may belong to somebody else by
// the time it is used, a pid with its start time does not.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since boot
	Exe   string `json:"exe"`
}

// identify reads the identity of a running process.
func identify(pid int) (process, error) {
	stat, err := readStat(pid)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if stat.leaderEnded() {
		return process{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	// The binary may have been replaced since: the process is still the same.
	return process{PID: pid, Start: stat.start, Exe: strings.TrimSuffix(exe, " (deleted)")}, nil
}

// alive says whether exactly this process still runs.
func (p process) alive() bool {
	now, err := identify(p.PID)
	return err == nil && now == p
}

// holding says whether the process may still hold ports and locks. That is longer
// than alive: on its way out a process loses its memory, and with it the name of
// its binary, before its files, and its first thread ends before the others.
func (p process) holding() bool {
	stat, err := readStat(p.PID)
	return err == nil && stat.start == p.Start && (!stat.leaderEnded() || stat.threads > 1)
}

// kill ends the process at once and waits until it is gone. SIGKILL on purpose:
// on SIGTERM kube-apiserver keeps its port for more than a minute.
func (p process) kill() error {
	if p.alive() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d (%s): %w", p.PID, p.Exe, err)
		}
	}
	return p.waitGone()
}

func (p process) waitGone() error {
	deadline := time.Now().Add(20 * time.Second)
	for p.holding() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d (%s): not gone after 20s", p.PID, p.Exe)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
