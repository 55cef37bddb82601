//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/meter"
	"github.com/headgate/headgate/cmd/kubectl-headgate/overview"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/test/load"
)

// plugin builds kubectl-headgate and runs it.
func (s *space) plugin(args ...string) string {
	s.Helper()
	binary := filepath.Join(suite.chart.Repository, "bin", "kubectl-headgate")
	build := exec.CommandContext(s.ctx, "go", "build", "-buildvcs=false", "-o", binary, "./cmd/kubectl-headgate")
	build.Dir = suite.chart.Repository
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the images, so that little is compiled anew
	out, err := build.CombinedOutput()
	if err != nil {
		s.Fatalf("build the plugin: %v\n%s", err, out)
	}
	if suite.Kubeconfig != "" {
		args = append(args, "--kubeconfig", suite.Kubeconfig)
	}
	out, err = exec.CommandContext(s.ctx, binary, append(args, "-n", s.name)...).CombinedOutput()
	if err != nil {
		s.Fatalf("kubectl headgate %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func explainSaysWhatWouldHappen(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	limit := perKey(perSecond("per-key", 5, 5))
	limit.Strategy = v1alpha1.EqualShare
	policy := s.policy("checkout", app.Name, limit)
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)
	for range 2 { // asking takes nothing
		var x admission.Explanation
		out := s.plugin("explain", policy.Name, "--request", "GET /v1/x", "-H", "x-api-key: gold", "-o", "json")
		if err := json.Unmarshal([]byte(out), &x); err != nil {
			s.Fatalf("%v: %s", err, out)
		}
		if x.Verdict != "admitted" || len(x.Limits) != 1 || !x.Limits[0].Counts || x.Limits[0].Key[0] != "gold" || x.Limits[0].Remaining != 5 {
			s.Errorf("explained as %s", out)
		}
	}
	s.Log(s.plugin("explain", policy.Name, "--request", "POST /v1/x"))
}

// topAndStatusSayWhatHappens: what two pods admit and deny under load, and that both are connected.
func topAndStatusSayWhatHappens(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(2)), "deployment")
	policy := s.policy("checkout", app.Name, equally(perSecond("all", 20, 20)))
	s.apply(policy)
	s.enforced(policy, 2)
	s.settled(app, 2)
	run := s.load(app, load.Client{Rate: 60, Connections: load.New})
	s.until(run, 120) // the burst is spent
	var top struct {
		Limits []meter.Row `json:"limits"`
	}
	out := s.plugin("top", policy.Name, "--once", "--interval", "2s", "--pods", "-o", "json")
	if err := json.Unmarshal([]byte(out), &top); err != nil || len(top.Limits) != 3 {
		s.Fatalf("%v: %s", err, out)
	}
	if l := top.Limits[0]; l.Pods != 2 || l.Most != 20 || l.Denied <= 0 || l.Admitted <= 0 || l.Offered != l.Admitted+l.Denied || l.Use == nil {
		s.Errorf("60/s are offered to a limit of 20/s, and top says %s", out)
	}
	s.Log("\n" + s.plugin("top", "--once", "--pods"))
	var status struct {
		Policies []overview.Policy `json:"policies"`
	}
	out = s.plugin("status", "-o", "json")
	if err := json.Unmarshal([]byte(out), &status); err != nil || len(status.Policies) != 1 {
		s.Fatalf("%v: %s", err, out)
	}
	if p := status.Policies[0]; p.State != "Enforced" || p.Enforcing != 2 || p.Pods != 2 || p.Connected == nil || *p.Connected != 2 || p.Behind != 0 || len(p.Troubles) != 0 {
		s.Errorf("both pods enforce and are connected, and status says %s", out)
	}
	s.Log("\n" + s.plugin("status", "-o", "wide"))
	s.none(run.Stop())
}
