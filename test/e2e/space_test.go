//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/oracle"
	"github.com/headgate/headgate/test/testbed"
)

// Bounds of what takes its time on a small and busy machine. What is promised stands in the cases.
const (
	rollout = 90 * time.Second // pods start, and others end with a grace
	soon    = 20 * time.Second // nothing has to start
)

// space is one case: a namespace of its own, and what is known of it.
type space struct {
	*testing.T
	ctx    context.Context
	name   string // of the namespace
	kept   string // folder for what is kept of the case
	limits map[string]oracle.Limit
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// newSpace makes the namespace, which goes when the case ends.
func newSpace(t *testing.T, labels ...string) *space {
	t.Helper()
	slug := strings.Trim(notWord.ReplaceAllString(strings.ToLower(filepath.Base(t.Name())), "-"), "-")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-" + slug[:min(len(slug), 40)] + "-", Labels: map[string]string{labelCase: ""},
	}}
	for i := 0; i+1 < len(labels); i += 2 {
		ns.Labels[labels[i]] = labels[i+1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	s := &space{T: t, ctx: ctx, limits: map[string]oracle.Limit{}, kept: filepath.Join(suite.kept, slug)}
	s.must(suite.Create(ctx, ns), "namespace")
	s.name = ns.Name
	s.must(os.MkdirAll(s.kept, 0o755), "folder")
	t.Cleanup(func() {
		defer cancel()
		if t.Failed() {
			s.dump()
		}
		if err := suite.Delete(ctx, ns); err != nil {
			t.Logf("namespace %s: %v", ns.Name, err)
		}
	})
	return s
}

// must ends the case on an error.
func (s *space) must(err error, what string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// skip says loudly what was not tested. In CI nothing is.
func (s *space) skip(why string) {
	s.Helper()
	if os.Getenv("CI") == "true" {
		s.Fatalf("nothing may be skipped in CI: %s", why)
	}
	s.Skipf("SKIPPED: %s", why)
}

// app is the echo app, with a Service.
func (s *space) app(name string, args ...string) *testbed.App {
	s.Helper()
	a := &testbed.App{Name: name, Namespace: s.name, Image: suite.images.Name("echo"), Local: suite.Local, Args: args}
	s.must(suite.Create(s.ctx, a.Service()), "service")
	return a
}

// running is the app as a Deployment whose pods are ready.
func (s *space) running(name string, replicas int) *testbed.App {
	s.Helper()
	a := s.app(name)
	s.must(suite.Create(s.ctx, a.Deployment(int32(replicas))), "deployment")
	s.ready(a, replicas)
	return a
}

// ready waits for the pods of an app.
func (s *space) ready(a *testbed.App, n int) []corev1.Pod {
	s.Helper()
	pods, err := suite.WaitReady(s.ctx, rollout, a, n)
	s.must(err, "pods")
	return pods
}

// settled waits until n pods are ready and no other one is left.
func (s *space) settled(a *testbed.App, n int) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.must(testbed.Wait(s.ctx, rollout, "pods to settle", func(ctx context.Context) (err error) {
		if pods, err = suite.Pods(ctx, a); err != nil {
			return err
		}
		for i := range pods {
			if !testbed.Ready(&pods[i]) {
				return fmt.Errorf("%s", testbed.Unready(&pods[i]))
			}
		}
		if len(pods) != n {
			return fmt.Errorf("there are %d pods, not %d", len(pods), n)
		}
		return nil
	}), a.Name)
	return pods
}

// perSecond is a limit of n requests per second for everything.
func perSecond(name string, n, burst int64) v1alpha1.Limit {
	return v1alpha1.Limit{Name: name, Rate: v1alpha1.Rate{Requests: n, Per: "1s"}, Burst: &burst}
}

// equally gives each of N pods one N-th of a limit.
func equally(l v1alpha1.Limit) v1alpha1.Limit {
	l.Strategy = v1alpha1.EqualShare
	return l
}

// lent lends a limit to the pods where the demand is.
func lent(l v1alpha1.Limit) v1alpha1.Limit {
	l.Strategy = v1alpha1.Adaptive
	return l
}

// perKey makes a limit one for each API key.
func perKey(l v1alpha1.Limit) v1alpha1.Limit {
	l.Key = []v1alpha1.KeyPart{{Header: "X-API-Key"}}
	return l
}

// policy is a policy for a Deployment.
func (s *space) policy(name, deployment string, limits ...v1alpha1.Limit) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name},
		Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []v1alpha1.TargetRef{{Group: "apps", Kind: "Deployment", Name: deployment}},
			Limits:     limits,
		},
	}
}

// apply creates a policy and lets the oracle judge by it.
func (s *space) apply(p *v1alpha1.RateLimitPolicy) {
	s.Helper()
	s.must(suite.Create(s.ctx, p), "policy")
	s.must(testbed.Declare(s.limits, p), "policy")
}

// enforced waits until n pods, all there are, enforce the policy.
func (s *space) enforced(p *v1alpha1.RateLimitPolicy, n int) {
	s.Helper()
	s.enforcedWithin(rollout, p, n)
}

func (s *space) enforcedWithin(d time.Duration, p *v1alpha1.RateLimitPolicy, n int) {
	s.Helper()
	_, err := suite.WaitEnforced(s.ctx, d, client.ObjectKeyFromObject(p), n)
	s.must(err, "policy")
}

// load sends requests to the app's Service.
func (s *space) load(a *testbed.App, clients ...load.Client) *load.Run {
	s.Helper()
	address, err := suite.Address(s.ctx, a)
	s.must(err, "load")
	s.must(suite.WaitReachable(s.ctx, soon, address), "load")
	run, err := load.Start(s.ctx, address, clients...)
	s.must(err, "load")
	s.Cleanup(func() { run.Stop() })
	return run
}

// until lets a load run until it has offered n more requests.
func (s *space) until(run *load.Run, n int64) {
	s.Helper()
	from := run.Count().Offered
	s.must(testbed.Wait(s.ctx, rollout, "the load", func(context.Context) error {
		if now := run.Count().Offered - from; now < n {
			return fmt.Errorf("%d of %d requests were sent", now, n)
		}
		return nil
	}), "load")
}

// none fails the case for each request that was lost without an excuse.
func (s *space) none(answers []load.Answer, crashes ...load.Crash) {
	s.Helper()
	lost, excused := load.Failures(answers, crashes...)
	for i := range lost[:min(len(lost), 5)] {
		s.Logf("lost: %s", &lost[i])
	}
	if len(lost) > 0 {
		s.Errorf("%d of %d requests were lost (%d more may have been in flight on a crashed pod)", len(lost), len(answers), len(excused))
	}
}

// records are those of the namespace's pods. What comes after them in a case is not tested on another cluster.
func (s *space) records() []*record.File {
	s.Helper()
	if suite.records == "" {
		s.skip("what pods record on another cluster's nodes is out of reach, so the law was not judged")
	}
	files, err := testbed.Records(suite.records, s.name)
	s.must(err, "records")
	return files
}

// judge lets the oracle look at all decisions of the namespace's pods, and wants at least so many admissions as clients saw.
func (s *space) judge(runs ...*load.Run) *oracle.Report {
	s.Helper()
	report := s.verdict("oracle.txt", s.records(), s.limits)
	var admitted int64
	for _, r := range runs {
		admitted += r.Count().Admitted
	}
	if int64(report.Admitted) < admitted {
		s.Errorf("clients saw %d requests admitted, the pods have recorded %d", admitted, report.Admitted)
	}
	return report
}

func (s *space) verdict(file string, records []*record.File, limits map[string]oracle.Limit) *oracle.Report {
	s.Helper()
	report := oracle.Check(records, limits)
	var b strings.Builder
	report.Fprint(&b)
	s.must(os.WriteFile(filepath.Join(s.kept, file), []byte(b.String()), 0o644), "verdict")
	s.Log(strings.TrimSpace(b.String()))
	if !report.Kept() {
		s.Error("the law was broken")
	}
	if report.Decisions == 0 {
		s.Error("nothing was recorded, so nothing was judged")
	}
	return report
}
