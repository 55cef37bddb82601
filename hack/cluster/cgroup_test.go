// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHierarchiesAreTheMountedCgroupTrees(t *testing.T) {
	const mounts = `proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
cgroup /elsewhere/memory cgroup rw,memory 0 0
`
	got, err := parseHierarchies(mounts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := parseHierarchies("proc /proc proc rw 0 0\n"); err == nil {
		t.Error("no hierarchy is no error")
	}
}

func TestOnlyTheControllersThatAreOffAreTurnedOn(t *testing.T) {
	got, err := missingControllers("cpuset cpu io memory hugetlb pids", "cpu memory")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"cpuset", "pids"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := missingControllers("cpu io memory pids", ""); err == nil {
		t.Error("a missing controller is no error")
	}
}

func TestRemoveTreeRemovesFoldersFromTheLeavesUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "headgate-node1")
	if err := os.MkdirAll(filepath.Join(dir, "kubepods", "burstable", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing left to do
		if err := removeTree(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}
