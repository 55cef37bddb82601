// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ensureAddons starts metrics-server and applies the manifests of what every
// cluster is expected to have.
func ensureAddons(ctx context.Context, s settings, st *state) error {
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	data := map[string]any{
		"DNS": dnsIP, "MachineIP": machineIP, "Port": metricsPort,
		"CA": base64.StdEncoding.EncodeToString(ca),
	}
	var manifests bytes.Buffer
	for _, name := range []string{"coredns.yaml", "metrics-server.yaml"} {
		content, err := render(name, data)
		if err != nil {
			return err
		}
		manifests.Write(content)
		manifests.WriteString("---\n")
	}
	cmd := exec.CommandContext(ctx, s.binary("kubectl"), "--kubeconfig="+s.adminKubeconfig(),
		"apply", "--server-side", "--force-conflicts", "--field-manager=hack-cluster", "-f", "-")
	cmd.Stdin = &manifests
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return metricsServer(s).ensure(s, st)
}

func waitForDNS(ctx context.Context, s settings) error {
	api, err := newAPI(s)
	if err != nil {
		return err
	}
	return waitFor(ctx, "deployment coredns", alwaysAlive, func(ctx context.Context) error {
		return api.deploymentReady(ctx, "kube-system", "coredns")
	})
}
