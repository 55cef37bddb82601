package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	state, start, err := parseStat(stat)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return process{}, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	// The binary may have been replaced since: the process is still the same.
	return process{PID: pid, Start: start, Exe: strings.TrimSuffix(exe, " (deleted)")}, nil
}

// parseStat takes the state and the start time out of /proc/<pid>/stat. The
// second field is the command's name, which may hold spaces and parentheses.
func parseStat(stat []byte) (state byte, start uint64, err error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, errors.New("stat: no command name")
	}
	fields := strings.Fields(string(stat[end+1:]))
	const startField = 19 // field 22, counted from the state, which is field 3
	if len(fields) <= startField {
		return 0, 0, errors.New("stat: too few fields")
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("stat: start time: %w", err)
	}
	return fields[0][0], start, nil
}

// alive says whether exactly this process still runs.
func (p process) alive() bool {
	if p.PID == 0 {
		return false
	}
	now, err := identify(p.PID)
	return err == nil && now == p
}

// kill ends the process at once and waits until it is gone. SIGKILL on purpose:
// on SIGTERM kube-apiserver keeps its port for more than a minute.
func (p process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d (%s): %w", p.PID, p.Exe, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for p.alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d (%s): still there 20s after SIGKILL", p.PID, p.Exe)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// runMarker is in the environment of every process of a cluster. It tells them
// from others that run the same binaries, envtest's for one.
const runMarker = "HEADGATE_CLUSTER_RUN"

// marked lists the running processes that carry the marker of this run folder.
func marked(run string) ([]process, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	want := runMarker + "=" + run
	var found []process
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !hasEntry(environ, want) {
			continue // ended meanwhile, or not ours to read
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if p, err := identify(pid); err == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

func hasEntry(environ []byte, want string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == want {
			return true
		}
	}
	return false
}
