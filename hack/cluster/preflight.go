// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// ports of the machine that the cluster takes, by the process that takes them.
var ports = []struct {
	process string
	address string
}{
	{"etcd", "127.0.0.1:2379"},
	{"etcd", "127.0.0.1:2380"},
	{"kube-apiserver", ":6443"},
	{"kube-controller-manager", "127.0.0.1:10257"},
	{"kube-scheduler", "127.0.0.1:10259"},
	{"metrics-server", ":4443"},
}

func checkSystem() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the nodes are Linux namespaces: this works on Linux, not on %s; use CLUSTER=current with another cluster", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the nodes are namespaces with their own links and mounts, which only root can make: run as root, or use CLUSTER=current with another cluster")
	}
	return nil
}

// checkMachine looks for what would make a start fail later, and less clearly.
func checkMachine(st *state) error {
	errs := []error{checkPorts(st.running), checkRoutes(), checkBridgeFilter()}
	if !st.running("kube-apiserver") { // else it has its memory already
		errs = append(errs, checkMemory())
	}
	return errors.Join(errs...)
}

func checkPorts(running func(string) bool) error {
	var errs []error
	for _, p := range ports {
		if running(p.process) {
			continue // it is ours already
		}
		l, err := net.Listen("tcp", p.address)
		if err != nil {
			errs = append(errs, fmt.Errorf("port %s is needed for %s: %w; end what uses it (ss -ltnp)", p.address, p.process, err))
			continue
		}
		l.Close()
	}
	return errors.Join(errs...)
}

func checkRoutes() error {
	table, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	routes, err := parseRoutes(string(table))
	if err != nil {
		return err
	}
	return conflicts(routes, bridgeName, podCIDR, serviceCIDR, bridgeCIDR)
}

const (
	wantMemory     = 2 << 30  // two nodes, the control plane and a few dozen pods
	wantBuildSpace = 12 << 30 // module cache, build cache and binaries
	wantSpace      = 1 << 30
)

func checkMemory() error {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kib, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		if kib<<10 < wantMemory {
			return fmt.Errorf("memory: %d MiB are available, the cluster needs %d MiB", kib>>10, wantMemory>>20)
		}
	}
	return nil
}

// checkBridgeFilter: without br_netfilter a pod cannot reach a Service whose
// endpoint is on its own node, because the answer takes a short cut through the bridge.
func checkBridgeFilter() error {
	const setting = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if _, err := os.Stat(setting); err == nil {
		return nil
	}
	modprobe, err := requiredPath("kmod")
	if err != nil {
		return err
	}
	if err := command(modprobe, "br_netfilter"); err != nil {
		return fmt.Errorf("kernel module br_netfilter: %w", err)
	}
	return nil
}

func checkSpace(dir string, want uint64) error {
	free, err := freeSpace(dir)
	if err != nil {
		return err
	}
	if free < want {
		return fmt.Errorf("disk: %d MiB are free at %s, %d MiB are needed; make room or set HEADGATE_CACHE", free>>20, dir, want>>20)
	}
	return nil
}

// checkBuildSpace asks for the room of a cold build only while Go's build cache
// is small: a warm one holds most of it already.
func checkBuildSpace(ctx context.Context, s settings, goCommand string) error {
	out, err := exec.CommandContext(ctx, goCommand, "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	cache := strings.TrimSpace(string(out))
	if folderLargerThan(cache, 3<<30) {
		return checkSpace(s.cache, wantSpace)
	}
	return errors.Join(checkSpace(s.cache, wantBuildSpace), checkSpace(existing(cache), wantBuildSpace))
}
