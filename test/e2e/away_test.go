//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// everythingAboveFails: all replicas of the operator at once, then the API server. Running pods never notice, and a leader is
// back soon after.
func everythingAboveFails(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 50, Connections: load.Pinned}, load.Client{Rate: 50, Connections: load.New}, load.Client{Rate: 50, Connections: load.Renewed})
	s.until(run, 200)
	var operators corev1.PodList
	s.must(suite.List(s.ctx, &operators, client.InNamespace(testbed.Namespace)), "operator")
	for i := range operators.Items {
		s.kill(&operators.Items[i], "operator")
	}
	s.until(run, 300)
	s.operatorReady()
	s.touch(policy)
	s.enforcedWithin(takeover+margin, policy, 3)

	s.must(syscall.Kill(s.daemon("kube-apiserver"), syscall.SIGKILL), "API server")
	s.until(run, 600)
	s.repair()
	s.operatorReady()
	s.touch(policy)
	s.enforcedWithin(soon, policy, 3)
	s.none(run.Stop())
	if longest, _ := load.Drought(run.Answers()); longest > longestDrought {
		s.Errorf("nothing was admitted for %s", longest)
	}
	s.judge(run)
}

// podsWaitForTheOperator where the chart says failurePolicy: Fail.
func podsWaitForTheOperator(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	operator := &testbed.App{Name: testbed.Operator, Namespace: testbed.Namespace}
	s.failurePolicy(admissionregistrationv1.Fail)
	s.Cleanup(func() { s.failurePolicy(admissionregistrationv1.Ignore); s.scale(operator, 2); s.operatorReady() })
	s.scale(operator, 0)
	waitFor(s, soon, "the operator to be away", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := suite.List(ctx, &pods, client.InNamespace(testbed.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return errors.New("it is still there")
		}
		return nil
	})
	s.scale(app, 4)
	time.Sleep(3 * time.Second)
	if pods, err := suite.Pods(s.ctx, app); err != nil || len(pods) != 3 {
		s.Errorf("there are %d pods (%v): without the operator the fourth should wait", len(pods), err)
	}
	s.scale(operator, 2)
	s.operatorReady()
	s.enforced(policy, 4)
	for _, p := range s.settled(app, 4) {
		if !injector.Injected(&p.Spec) {
			s.Errorf("pod %s lacks the sidecar", p.Name)
		}
	}
}

func (s *space) failurePolicy(to admissionregistrationv1.FailurePolicyType) {
	s.Helper()
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	hook.Name = testbed.Operator
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":%q}]`, to)
	s.must(suite.Patch(context.WithoutCancel(s.ctx), hook, client.RawPatch("application/json-patch+json", patch)), "failure policy")
}

// jobWithTheSidecarFinishes: no policy can target a Job, but its manifest can have been through kubectl headgate inject.
func jobWithTheSidecarFinishes(t *testing.T) {
	s := newSpace(t)
	app := &testbed.App{Name: "job", Namespace: s.name, Image: suite.images.Name("echo"), Local: suite.Local, Args: []string{"-lifetime=2s"}}
	job := app.Job()
	pod, err := injector.Inject(&corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec},
		injector.Config{Image: suite.images.Name("sidecar"), PullPolicy: corev1.PullIfNotPresent, Operator: "headgate-operator.headgate-system.svc:9444", CAConfigMap: "headgate-ca"},
		injector.Plan{Mode: v1alpha1.NamedPort, Sleep: 5})
	s.must(err, "inject")
	job.Spec.Template.ObjectMeta, job.Spec.Template.Spec = pod.ObjectMeta, pod.Spec
	s.must(suite.Create(s.ctx, job), "job")
	waitFor(s, rollout, "the job to finish", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				return nil
			}
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				return fmt.Errorf("%w: %s", testbed.ErrStop, c.Message)
			}
		}
		return fmt.Errorf("%d active", job.Status.Active)
	})
}
