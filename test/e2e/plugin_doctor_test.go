//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/diagnosis"
	"github.com/headgate/headgate/cmd/kubectl-headgate/plugin"
	"github.com/headgate/headgate/test/testbed"
)

// call runs the plugin in this process, and returns what it prints and its status.
func (s *space) call(args ...string) (out string, status int) {
	s.Helper()
	var b bytes.Buffer
	c := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &b, ErrOut: &b})
	args = append(args, "-n", s.name)
	if suite.Kubeconfig != "" {
		args = append(args, "--kubeconfig", suite.Kubeconfig)
	}
	c.SetArgs(args)
	err := c.ExecuteContext(s.ctx)
	status, silent := plugin.Status(err)
	if !silent {
		fmt.Fprintln(&b, "error:", err)
	}
	return b.String(), status
}

// diagnosed waits until doctor names one cause and no other; none = until it says that nothing is wrong.
func (s *space) diagnosed(code diagnosis.Code) {
	s.Helper()
	begin := time.Now()
	var text string
	waitFor(s, rollout, "doctor to name "+string(code), func(context.Context) error {
		out, status := s.call("doctor", "-o", "json")
		var r diagnosis.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var problems []diagnosis.Code
		for _, f := range r.Findings {
			if f.Level == diagnosis.Problem {
				problems = append(problems, f.Code)
			}
		}
		text = out
		switch {
		case code == "" && len(problems) == 0 && status == 0:
			return nil
		case code != "" && len(problems) == 1 && problems[0] == code && status == 1:
			return nil
		}
		return fmt.Errorf("status %d, problems %v: %s", status, problems, out)
	})
	if code != "" {
		text, _ = s.call("doctor")
	}
	s.Logf("%s after %s:\n%s", code, time.Since(begin).Round(100*time.Millisecond), text)
}

// doctorNamesTheCause breaks one thing after the other, and mends it again.
func doctorNamesTheCause(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	operator := &testbed.App{Name: testbed.Operator, Namespace: testbed.Namespace}
	pods := s.settled(app, 3)
	s.diagnosed("")

	lost := s.policy("lost", "nobody", perSecond("all", 5, 5))
	s.must(suite.Create(s.ctx, lost), "policy")
	s.diagnosed(diagnosis.TargetMissing)
	s.must(suite.Delete(s.ctx, lost), "policy")

	bare := s.running("bare", 1)
	manual := s.policy("bare", bare.Name, perSecond("all", 5, 5))
	manual.Spec.Injection.Rollout = v1alpha1.Manual
	s.must(suite.Create(s.ctx, manual), "policy")
	s.diagnosed(diagnosis.PodWithoutSidecar)
	s.must(suite.Delete(s.ctx, manual), "policy")

	s.signalContainer(&pods[0], "headgate", syscall.SIGSTOP)
	s.Cleanup(func() { s.signalContainer(&pods[0], "headgate", syscall.SIGCONT) })
	s.diagnosed(diagnosis.SidecarFrozen)
	s.signalContainer(&pods[0], "headgate", syscall.SIGCONT)

	open := s.drop(&pods[1], "headgate", outgoing, 9444)
	s.diagnosed(diagnosis.StreamBlocked)
	open()
	s.enforced(policy, 3)

	replicas := s.operatorPods()
	var reopen []func()
	for i := range replicas {
		reopen = append(reopen, s.drop(&replicas[i], "operator", incoming, 9443))
	}
	s.diagnosed(diagnosis.WebhookUnreachable)
	for _, f := range reopen {
		f()
	}
	s.diagnosed("")

	renew := s.expire()
	s.diagnosed(diagnosis.CertificateExpired)
	renew()
	s.diagnosed("")

	s.Cleanup(func() { s.scale(operator, 2); s.operatorReady() })
	s.scale(operator, 0)
	s.diagnosed(diagnosis.OperatorScaledToZero)
	s.scale(operator, 2)
	s.operatorReady()
	s.diagnosed("")
}

// operatorPods lists the pods of the operator.
func (s *space) operatorPods() []corev1.Pod {
	s.Helper()
	var pods corev1.PodList
	s.must(suite.List(s.ctx, &pods, client.InNamespace(testbed.Namespace), client.MatchingLabels{"app.kubernetes.io/component": "operator"}), "operator's pods")
	return pods.Items
}
