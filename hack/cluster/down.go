// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/headgate/headgate/hack/progress"
)

// down ends the cluster and removes everything but binaries and images. It works
// from any state that an `up` was killed in.
func down(_ context.Context, s settings) error {
	if err := checkSystem(); err != nil {
		return err
	}
	unlock, err := lockCluster(s)
	if err != nil {
		return err
	}
	defer unlock()
	p := progress.New(os.Stderr)
	return p.Step("cluster down", func() error { return tearDown(s) })
}

// tearDown goes on after an error: the more is removed, the better. Without a
// state there is nothing of ours: links and cgroups with our names then belong to
// a cluster with another cache folder.
func tearDown(s settings) error {
	if _, err := os.Stat(s.statePath()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	st, err := loadState(s)
	if err != nil {
		return err
	}
	errs := []error{endProcesses(st), endStrays(s, &state{})}
	for _, n := range nodes {
		errs = append(errs, clearNode(n))
	}
	errs = append(errs, removeLink(bridgeName), st.undelegate())
	_, err = st.restoreSysctls()
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err // the state stays, for the next down
	}
	return removeRun(s)
}

// endProcesses ends what the state names: nodes first, as their containers still
// talk to the control plane.
func endProcesses(st *state) error {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name())
	}
	names = append(names, "metrics-server", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
	var errs []error
	for _, name := range names {
		errs = append(errs, st.Processes[name].kill())
	}
	return errors.Join(errs...)
}

// endStrays ends the processes that carry the cluster's marker but are not in the
// state, nor in a node that is: `up` was killed after it had started them.
func endStrays(s settings, st *state) error {
	found, err := marked(s.run)
	if err != nil {
		return err
	}
	known := map[int]bool{os.Getpid(): true}
	inside := map[string]bool{}
	var errs []error
	for _, p := range st.Processes {
		if !p.alive() {
			errs = append(errs, p.waitGone())
			continue
		}
		known[p.PID] = true
		inside[pidNamespace(p.PID)] = true
	}
	delete(inside, pidNamespace(os.Getpid()))
	for _, p := range found {
		if !known[p.PID] && !inside[pidNamespace(p.PID)] {
			errs = append(errs, p.kill())
		}
	}
	return errors.Join(errs...)
}

func pidNamespace(pid int) string {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return ns
}

// removeRun deletes the state folder, and never anything through a mount.
func removeRun(s settings) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	// The deepest first.
	for _, dir := range slices.Backward(mountsBelow(string(mounts), s.run)) {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	if err := os.RemoveAll(s.run); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

// mountsBelow lists mount points in the order in which they were mounted.
func mountsBelow(mounts, dir string) []string {
	var found []string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			found = append(found, fields[1])
		}
	}
	return found
}
