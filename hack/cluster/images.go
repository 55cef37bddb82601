// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/headgate/headgate/hack/progress"
)

// ownImages are the images that the cluster itself needs, by their binaries.
var ownImages = []string{"coredns", "pause"}

const ownRegistry = "localhost/headgate-cluster/"

// writeImages makes archives of the own images, unless they are newer than their binaries.
func writeImages(s settings) error {
	for _, name := range ownImages {
		archive := s.images + "/" + name + ".tar"
		if newer(archive, s.binary(name)) {
			continue
		}
		if err := command(s.binary("image"), "-o", archive, "-t", ownRegistry+name+":local", s.binary(name)); err != nil {
			return err
		}
	}
	return nil
}

func newer(path, than string) bool {
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(than)
	return err == nil && a.ModTime().After(b.ModTime())
}

// loadImages imports archives into containerd on every node.
func loadImages(ctx context.Context, s settings, archives []string) error {
	st, err := runningState(s)
	if err != nil {
		return err
	}
	p := progress.New(os.Stderr)
	for _, archive := range archives {
		err := p.Step("load "+archive, func() error {
			for _, n := range nodes {
				in, err := os.Open(archive)
				if err != nil {
					return fmt.Errorf("image archive: %w", err)
				}
				out, err := inNode(ctx, s, st, n, in, s.binary("ctr"), "--namespace=k8s.io", "images", "import", "-").CombinedOutput()
				in.Close()
				if err != nil {
					return fmt.Errorf("%s: %w: %s", n.Name(), err, strings.TrimSpace(string(out)))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func listImages(ctx context.Context, s settings) error {
	st, err := runningState(s)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		out, err := inNode(ctx, s, st, n, nil, s.binary("ctr"), "--namespace=k8s.io", "images", "list", "--quiet").Output()
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
		for name := range strings.Lines(string(out)) {
			fmt.Print(n.Name(), " ", name)
		}
	}
	return nil
}

// nodeExec runs a command in the node, connected to this terminal.
func nodeExec(ctx context.Context, s settings, name string, argv []string) error {
	n, err := nodeNamed(name)
	if err != nil {
		return err
	}
	st, err := runningState(s)
	if err != nil {
		return err
	}
	cmd := inNode(ctx, s, st, n, os.Stdin, argv...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// runningState is for commands that need the nodes.
func runningState(s settings) (*state, error) {
	st, err := loadState(s)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if !st.running(n.Name()) {
			return nil, fmt.Errorf("%s does not run: start the cluster with `make cluster-up`", n.Name())
		}
	}
	return st, nil
}

// inNode prepares a command in the namespaces of the node's pid 1.
func inNode(ctx context.Context, s settings, st *state, n node, in io.Reader, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(st.Processes[n.Name()].PID), "--mount", "--net", "--pid", "--uts", "--ipc",
		"--", "env", "PATH=" + s.searchPath()}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Stdin = in
	return cmd
}
