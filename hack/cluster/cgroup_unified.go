// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// neededControllers are those without which the kubelet does not start.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

// createUnifiedCgroup is createCgroups for cgroup v2. It follows the kernel's
// documentation; the project's own runs have been on cgroup v1 so far.
func createUnifiedCgroup(st *state, name string) error {
	added, err := delegate(cgroupRoot)
	if err != nil {
		return err
	}
	if len(added) > 0 {
		st.Delegated = append(st.Delegated, added...)
		if err := st.save(); err != nil {
			return err
		}
	}
	dir := filepath.Join(cgroupRoot, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cgroup: %w", err)
	}
	_, err = delegate(dir)
	return err
}

// delegate lets the children of a cgroup use the needed controllers and returns
// those that it had to turn on.
func delegate(dir string) ([]string, error) {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	missing, err := missingControllers(string(available), string(enabled))
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", dir, err)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	err = os.WriteFile(control, []byte("+"+strings.Join(missing, " +")), 0o644)
	if errors.Is(err, syscall.EBUSY) {
		// Inside of a container the top cgroup is not the machine's root, and a
		// cgroup with processes cannot have children with controllers. Moving
		// other people's processes away is not this program's business.
		return nil, fmt.Errorf("cgroup %s has processes of its own, so %s cannot be turned on for its children: "+
			"move the processes into a child cgroup first, or use CLUSTER=current with another cluster", dir, strings.Join(missing, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return missing, nil
}

func missingControllers(available, enabled string) ([]string, error) {
	var missing []string
	for _, c := range neededControllers {
		if !slices.Contains(strings.Fields(available), c) {
			return nil, fmt.Errorf("controller %q is not available here; use CLUSTER=current with another cluster", c)
		}
		if !slices.Contains(strings.Fields(enabled), c) {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// undelegate turns off what delegate turned on at the top.
func (st *state) undelegate() error {
	if len(st.Delegated) == 0 {
		return nil
	}
	control := filepath.Join(cgroupRoot, "cgroup.subtree_control")
	if err := os.WriteFile(control, []byte("-"+strings.Join(st.Delegated, " -")), 0o644); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}
