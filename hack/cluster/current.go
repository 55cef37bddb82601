// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// oldestMinor is the oldest Kubernetes that the project works on: native
// sidecars are stable since 1.33.
const oldestMinor = 33

// dispatchCurrent is for CLUSTER=current: somebody else's cluster, which is only
// looked at.
func dispatchCurrent(ctx context.Context, s settings, command string) error {
	switch command {
	case "up", "status":
		return checkCurrent(ctx, s)
	case "down":
		fmt.Fprintln(os.Stderr, "CLUSTER=current: the cluster is not ours to end; nothing done")
		return nil
	case "images":
		return errors.New("CLUSTER=current: images reach the cluster through its registry: " +
			"push them there and set IMG_REGISTRY (and IMG_TAG) to their names, or use what the cluster offers, as `kind load image-archive`")
	default:
		return fmt.Errorf("CLUSTER=current: %s is for the local cluster only", command)
	}
}

func checkCurrent(ctx context.Context, s settings) error {
	kubectl, err := findKubectl(s)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kubectl, "version", "--output=json", "--request-timeout=10s")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("current cluster: %w: %s; check `kubectl config current-context`", err, strings.TrimSpace(stderr.String()))
	}
	version, minor, err := serverVersion(out)
	if err != nil {
		return fmt.Errorf("current cluster: %w", err)
	}
	if minor < oldestMinor {
		return fmt.Errorf("current cluster: it runs Kubernetes %s, the oldest that works is 1.%d", version, oldestMinor)
	}
	fmt.Fprintf(os.Stderr, "current cluster: reachable, Kubernetes %s\n", version)
	return nil
}

func findKubectl(s settings) (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	if _, err := os.Stat(s.binary("kubectl")); err == nil {
		return s.binary("kubectl"), nil
	}
	return "", errors.New("kubectl is not in PATH: install it, or build it with `go run ./hack/cluster assets`")
}

// serverVersion reads the answer of `kubectl version -o json`.
func serverVersion(answer []byte) (version string, minor int, err error) {
	var v struct {
		ServerVersion struct{ GitVersion, Major, Minor string }
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return "", 0, fmt.Errorf("version: %w", err)
	}
	server := v.ServerVersion
	if server.Major != "1" {
		return "", 0, fmt.Errorf("version: unexpected %q", server.GitVersion)
	}
	// Some providers write "33+".
	minor, err = strconv.Atoi(strings.TrimRight(server.Minor, "+"))
	if err != nil {
		return "", 0, fmt.Errorf("version: %w", err)
	}
	return server.GitVersion, minor, nil
}
