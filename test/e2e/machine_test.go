//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/test/testbed"
)

// The processes of the local cluster are processes of this machine: what breaks machines can be done to them.

// signalContainer sends a signal to the process of a container.
func (s *space) signalContainer(pod *corev1.Pod, container string, signal syscall.Signal) {
	s.Helper()
	pid, err := s.containerProcess(pod, container)
	s.must(err, "container "+container)
	s.must(syscall.Kill(pid, signal), signal.String())
}

// daemon returns the process that the cluster keeps under a name: etcd, kube-apiserver, or node1, the pid 1 of a node.
func (s *space) daemon(name string) int {
	s.Helper()
	if !suite.Local {
		s.skip("processes of another cluster are out of reach")
	}
	cache, err := testbed.Cache()
	s.must(err, "cache")
	b, err := os.ReadFile(filepath.Join(cache, "run", "state.json"))
	s.must(err, "state of the cluster")
	var state struct {
		Processes map[string]struct {
			PID int `json:"pid"`
		} `json:"processes"`
	}
	s.must(json.Unmarshal(b, &state), "state of the cluster")
	pid := state.Processes[name].PID
	if pid <= 1 {
		s.Fatalf("the cluster has no process %s", name)
	}
	return pid
}

// kubelet returns the kubelet of a node: a child of its pid 1.
func (s *space) kubelet(node string) int {
	s.Helper()
	init := s.daemon(node)
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	s.must(err, "processes")
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (comm) state ppid ...
		comm := stat[bytes.IndexByte(stat, '(')+1 : bytes.LastIndexByte(stat, ')')]
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if string(comm) == "kubelet" && string(fields[1]) == strconv.Itoa(init) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			s.must(err, "kubelet")
			return pid
		}
	}
	s.Fatalf("%s has no kubelet", node)
	return 0
}

// repair brings back what a case has ended.
func (s *space) repair() {
	s.Helper()
	repository, err := testbed.Repository()
	s.must(err, "repository")
	var out bytes.Buffer
	if err := testbed.Make(s.ctx, repository, "cluster-up", &out); err != nil {
		s.Fatal(fmt.Errorf("%w: %s", err, out.Bytes()))
	}
}
