// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// searchPath is for every process of the cluster: its own binaries first, then
// the machine's, the administrator's included.
func (s settings) searchPath() string {
	return s.bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// environment is all that a process of the cluster gets. The caller's own is not
// passed on: a proxy setting, for one, would lead kube-apiserver's webhook calls
// out of the machine.
func (s settings) environment() []string {
	return []string{
		"PATH=" + s.searchPath(),
		"HOME=" + s.run,
		"HEADGATE_CACHE=" + s.cache,
		runMarker + "=" + s.run,
	}
}

// start begins a process that outlives this program and records it. namespaces
// are flags of clone(2).
func (st *state) start(s settings, name string, namespaces uintptr, argv ...string) error {
	logFile, err := openLog(s.log(name))
	if err != nil {
		return err
	}
	defer logFile.Close()
	if err := keepFiles(); err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.environment(), s.run
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p, err := identify(cmd.Process.Pid)
	// Collects it should it end while this program is still there.
	go func() { _ = cmd.Wait() }()
	if err != nil {
		return fmt.Errorf("start %s: %w; see %s", name, err, s.log(name))
	}
	st.Processes[name] = p
	return st.save()
}

// keepFiles keeps files that this program was started with to itself: a process of the cluster outlives it, and with it a
// lock that somebody holds by such a file.
func keepFiles() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("open files: %w", err)
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}

// tail returns the last lines of a log, for error messages.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// command runs a short command and puts what it printed into the error.
func command(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
