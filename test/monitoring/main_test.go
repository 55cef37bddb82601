// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds alerts, runbooks and dashboards to the metrics that exist, with Prometheus' own parser and tools. It is
// a module of its own, so that nothing else needs Prometheus.
package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const (
	repository = "../.."
	rulesFile  = repository + "/charts/headgate/alerts/headgate.yaml"
	dashboards = repository + "/charts/headgate/dashboards"
	runbooks   = repository + "/docs/runbooks"
	casesFile  = "testdata/alerts.yaml"
)

func TestMain(m *testing.M) {
	cmd := exec.Command(repository + "/hack/tools/install-prometheus.sh")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "promtool:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// promtool runs a command that must succeed.
func promtool(t *testing.T, stdin *os.File, args ...string) string {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %v: %v\n%s", args, err, out)
	}
	return string(out)
}
