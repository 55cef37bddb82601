// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// isUnified says whether the machine has cgroup v2 only.
func isUnified() (bool, error) {
	st, err := statfs(cgroupRoot)
	if err != nil {
		return false, fmt.Errorf("cgroups: %w; mount them, or use CLUSTER=current with another cluster", err)
	}
	return st.Type == cgroup2Magic, nil
}

// hierarchies are the mounted cgroup trees: one with v2, several with v1.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	return parseHierarchies(string(mounts))
}

func parseHierarchies(mounts string) ([]string, error) {
	var found []string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[1], cgroupRoot) {
			continue
		}
		if fields[2] == "cgroup" || fields[2] == "cgroup2" {
			found = append(found, fields[1])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("cgroups: none are mounted below %s", cgroupRoot)
	}
	return found, nil
}

// createCgroups makes the parent of a node's pods in every hierarchy, apart from
// all that the machine has there itself.
func createCgroups(st *state, name string) error {
	unified, err := isUnified()
	if err != nil {
		return err
	}
	if unified {
		return createUnifiedCgroup(st, name)
	}
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		dir := filepath.Join(tree, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup: %w", err)
		}
		// A cpuset without processors and memory nodes takes no processes.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(tree, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cgroup: %w", err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
				return fmt.Errorf("cgroup: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes a node's cgroups from the leaves up. The kernel may still
// be busy with processes that have just been killed: it is asked again for a while.
func removeCgroups(name string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, tree := range trees {
		for {
			err := removeTree(filepath.Join(tree, name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("cgroup: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes folders only: the files in a cgroup go with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
