// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/headgate/headgate/hack/progress"
)

// kubernetesModule holds the go.mod of all the binaries.
const kubernetesModule = "hack/cluster/kubernetes"

// buildEnv and buildFlags decide what the binaries are: they are part of every
// stamp. cgo is off everywhere: turning it on for one would compile nearly all
// packages a second time.
var (
	buildEnv   = []string{"CGO_ENABLED=0", "GOWORK=off"}
	buildFlags = []string{"-buildvcs=false", "-ldflags",
		"-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2" +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"}
)

// target is a set of binaries that one `go build` makes; packages that share
// most of their dependencies are linked together.
type target struct {
	name     string
	module   string            // folder of the go.mod
	packages map[string]string // binary -> package
}

const kubernetesCmd = "k8s.io/kubernetes/cmd/"

// The first targets are what envtest needs as well.
var targets = []target{
	{"kube-apiserver and kubectl", kubernetesModule, map[string]string{
		"kube-apiserver": kubernetesCmd + "kube-apiserver",
		"kubectl":        kubernetesCmd + "kubectl",
	}},
	{"etcd", kubernetesModule, map[string]string{"etcd": "go.etcd.io/etcd/server/v3"}},
	{"kube-controller-manager and kube-scheduler", kubernetesModule, map[string]string{
		"kube-controller-manager": kubernetesCmd + "kube-controller-manager",
		"kube-scheduler":          kubernetesCmd + "kube-scheduler",
	}},
	{"kubelet, kube-proxy and containerd", kubernetesModule, map[string]string{
		"kubelet":                 kubernetesCmd + "kubelet",
		"kube-proxy":              kubernetesCmd + "kube-proxy",
		"containerd":              "github.com/containerd/containerd/v2/cmd/containerd",
		"containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		"ctr":                     "github.com/containerd/containerd/v2/cmd/ctr",
	}},
	{"CoreDNS, metrics-server and pause", kubernetesModule, map[string]string{
		"coredns":        "./cmd/coredns",
		"pause":          "./cmd/pause",
		"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
	}},
	{"image writer", "hack/tools", map[string]string{"image": "./image"}},
}

const envtestTargets = 2

// assets is the command for envtest: it prints the folder for KUBEBUILDER_ASSETS.
func assets(ctx context.Context, s settings) error {
	if err := buildAll(ctx, s, progress.New(os.Stderr), targets[:envtestTargets]); err != nil {
		return err
	}
	fmt.Println(s.bin)
	return nil
}

// buildAll builds the targets whose stamps do not match.
func buildAll(ctx context.Context, s settings, p *progress.Progress, targets []target) error {
	unlock, err := lockBuild(ctx, s, p)
	if err != nil {
		return err
	}
	defer unlock()
	goCommand, err := findGo()
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	var stale []target
	stamps := map[string]string{}
	for _, t := range targets {
		stamp, err := t.stamp(root)
		if err != nil {
			return err
		}
		if !t.upToDate(s, stamp) {
			stale, stamps[t.name] = append(stale, t), stamp
		}
	}
	if len(stale) == 0 {
		return nil
	}
	if err := checkBuildSpace(ctx, s, goCommand); err != nil {
		return err
	}
	p.Say("building %d of %d sets of binaries; with a cold build cache this takes about ten minutes, once", len(stale), len(targets))
	for _, t := range stale {
		err := p.Step("build "+t.name, func() error { return t.build(ctx, s, goCommand, root, stamps[t.name]) })
		if err != nil {
			return err
		}
	}
	return nil
}

func findGo() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("go is not in PATH: install Go %s or newer and add it", strings.TrimPrefix(runtime.Version(), "go"))
	}
	return path, nil
}

// build links into a folder next to bin and renames from there: a killed build
// leaves no half binary, and running processes keep the file that they started from.
func (t target) build(ctx context.Context, s settings, goCommand, root, stamp string) error {
	for binary, pkg := range t.packages {
		fresh := filepath.Join(s.cache, "build", binary)
		args := append([]string{"build", "-o", fresh}, buildFlags...)
		cmd := exec.CommandContext(ctx, goCommand, append(args, pkg)...)
		cmd.Dir, cmd.Env = filepath.Join(root, t.module), append(os.Environ(), buildEnv...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", pkg, err, lastLines(out.String(), 20))
		}
		if err := os.MkdirAll(s.bin, 0o755); err != nil {
			return fmt.Errorf("binaries: %w", err)
		}
		if err := os.Rename(fresh, s.binary(binary)); err != nil {
			return fmt.Errorf("binaries: %w", err)
		}
	}
	return writeFile(t.stampPath(s), []byte(stamp), 0o644)
}
