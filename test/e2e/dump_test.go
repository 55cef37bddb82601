//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/test/testbed"
)

// dump keeps what explains a failure.
func (s *space) dump() {
	kubectl := "kubectl"
	if suite.Local {
		kubectl = filepath.Join(suite.Binaries(), "kubectl")
	}
	for file, args := range map[string][]string{
		"objects.yaml":     {"get", "pods,deployments,replicasets,hpa,services,endpointslices,ratelimitpolicies.ratelimit.headgate.dev", "-o", "yaml", "-n", s.name},
		"pods.txt":         {"get", "pods", "-o", "wide", "-A"},
		"events.txt":       {"get", "events", "-n", s.name, "--sort-by=.metadata.creationTimestamp"},
		"sidecars.log":     {"logs", "-n", s.name, "-l", "app.kubernetes.io/name", "-c", "headgate", "--prefix", "--timestamps", "--tail=-1", "--max-log-requests=30"},
		"operator.log":     {"logs", "-n", testbed.Namespace, "-l", "app.kubernetes.io/name=" + "headgate", "--prefix", "--timestamps", "--tail=2000"},
		"lease.yaml":       {"get", "leases", "-n", testbed.Namespace, "-o", "yaml"},
		"operator-pods.md": {"describe", "pods", "-n", testbed.Namespace},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		cmd := exec.CommandContext(ctx, kubectl, args...)
		if suite.Kubeconfig != "" {
			cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
		}
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			s.Logf("kubectl %s: %v", args[0], err)
		}
		if err := os.WriteFile(filepath.Join(s.kept, file), out, 0o644); err != nil {
			s.Log(err)
		}
	}
	s.Logf("what explains it is in %s", s.kept)
}
