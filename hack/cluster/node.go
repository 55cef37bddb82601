// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// nodeNamespaces are those that a node does not share with the machine.
const nodeNamespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// nodeInitCommand is how this program is called as pid 1 of a node.
const nodeInitCommand = "node-init"

// nodeProgram is the copy of this program that nodes run: the original may be in
// a temporary folder of `go run`.
func (s settings) nodeProgram() string { return filepath.Join(s.run, "node") }

func copyProgram(s settings) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	in, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	defer in.Close()
	partial := s.nodeProgram() + ".partial"
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("own program: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	return os.Rename(partial, s.nodeProgram())
}

// ensureNode starts the node unless its pid 1 runs. What the node's last life
// left behind goes first; its images and its identity stay.
func ensureNode(ctx context.Context, s settings, st *state, n node) error {
	if st.running(n.Name()) {
		return waitForNode(ctx, s, st, n, time.Time{})
	}
	if err := clearNode(n); err != nil {
		return err
	}
	if err := writeNodeFiles(s, n); err != nil {
		return err
	}
	if err := createCgroups(st, n.Cgroup()); err != nil {
		return err
	}
	begin := time.Now()
	if err := st.start(s, n.Name(), nodeNamespaces, s.nodeProgram(), nodeInitCommand, n.Name()); err != nil {
		return err
	}
	if err := joinBridge(n, st.Processes[n.Name()].PID); err != nil {
		return err
	}
	return waitForNode(ctx, s, st, n, begin)
}

func clearNode(n node) error {
	if err := removeLink(n.link()); err != nil {
		return err
	}
	return removeCgroups(n.Cgroup())
}

func waitForNode(ctx context.Context, s settings, st *state, n node, since time.Time) error {
	api, err := newAPI(s)
	if err != nil {
		return err
	}
	return waitFor(ctx, n.Name()+" (logs "+s.log(n.Name()+"-*")+")", st.watch(s, n.Name()), func(ctx context.Context) error {
		if err := kubeletHealthy(ctx, n); err != nil {
			return fmt.Errorf("kubelet: %w", err)
		}
		return api.nodeReady(ctx, n.Name(), since)
	})
}

// writeNodeFiles renders the configuration of everything that runs on the node.
func writeNodeFiles(s settings, n node) error {
	config, err := newNodeConfig(s, n)
	if err != nil {
		return err
	}
	for file, template := range nodeTemplates {
		content, err := render(template, config)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(config.Dir, file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func newNodeConfig(s settings, n node) (nodeConfig, error) {
	runc, err := requiredPath("runc")
	if err != nil {
		return nodeConfig{}, err
	}
	bridge, err := requiredPath("containernetworking-plugins")
	if err != nil {
		return nodeConfig{}, err
	}
	fs, err := statfs(s.cache)
	if err != nil {
		return nodeConfig{}, err
	}
	// The kernel does not stack overlays on overlays: copy layers there instead.
	snapshotter := "overlayfs"
	if fs.Type == overlayMagic {
		snapshotter = "native"
	}
	return nodeConfig{
		Name: n.Name(), IP: n.IP(), PodCIDR: n.PodCIDR(), Cgroup: n.Cgroup(),
		ClusterPodCIDR: podCIDR, DNS: dnsIP,
		Dir: s.nodeDir(n), PKI: filepath.Clean(s.pki("")),
		Runc: runc, CNIBin: filepath.Dir(bridge), Snapshotter: snapshotter,
	}, nil
}
