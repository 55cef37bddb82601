//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// takeover is how soon a new leader has every pod's acknowledgement after the old one was killed.
const takeover = 10 * time.Second

func leaderIsKilled(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 50, Connections: load.Pinned}, load.Client{Rate: 50, Connections: load.New}, load.Client{Rate: 50, Connections: load.Renewed})
	s.until(run, 200)
	for _, how := range []string{"deleted by force", "killed"} {
		epoch, leader := s.leader()
		killed := time.Now()
		switch how {
		case "killed":
			s.kill(leader, "operator")
		default:
			s.must(suite.Delete(s.ctx, leader, client.GracePeriodSeconds(0)), "leader")
		}
		// An edit is enforced only once a leader has heard from every pod. The numbers stay, so the law is the same.
		s.touch(policy)
		s.enforcedWithin(takeover+margin, policy, 3)
		s.Logf("leader %s %s: every pod has acknowledged the new one after %s", leader.Name, how, time.Since(killed).Round(10*time.Millisecond))
		if now, _ := s.leader(); now == epoch {
			s.Errorf("leader %s was %s, and epoch %s goes on", leader.Name, how, epoch)
		}
		s.operatorReady()
		s.until(run, 200)
	}
	s.none(run.Stop())
	if longest, _ := load.Drought(run.Answers()); longest > longestDrought {
		s.Errorf("nothing was admitted for %s", longest)
	}
	s.judge(run)
}

// touch makes another generation of a policy that says the same.
func (s *space) touch(p *v1alpha1.RateLimitPolicy) {
	s.Helper()
	before := p.DeepCopy()
	p.Spec.Limits[0].Match = []v1alpha1.Match{{Path: v1alpha1.PathMatch{Type: v1alpha1.PathPrefix, Value: "/"}}}
	if before.Spec.Limits[0].Match != nil {
		p.Spec.Limits[0].Match = nil
	}
	s.must(suite.Patch(s.ctx, p, client.MergeFrom(before)), "edit")
}

// leader returns the epoch, and the pod that the Lease names.
func (s *space) leader() (epoch string, pod *corev1.Pod) {
	s.Helper()
	waitFor(s, soon, "a leader", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := suite.Get(ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator}, &lease); err != nil {
			return err
		}
		epoch = lease.Annotations[v1alpha1.AnnotationEpoch]
		address := lease.Annotations[v1alpha1.AnnotationLeader]
		var pods corev1.PodList
		if err := suite.List(ctx, &pods, client.InNamespace(testbed.Namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if ip := pods.Items[i].Status.PodIP; ip != "" && strings.HasPrefix(address, ip+":") {
				pod = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("nobody has address %q", address)
	})
	return epoch, pod
}

// operatorReady waits for all replicas.
func (s *space) operatorReady() {
	s.Helper()
	waitFor(s, rollout, "the operator", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := suite.Get(ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator}, &d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("%d of %d replicas are ready", d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

func operatorIsAway(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	operator := &testbed.App{Name: testbed.Operator, Namespace: testbed.Namespace}
	s.Cleanup(func() { s.scale(operator, 2); s.operatorReady() })
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 200)
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
	before := run.Count()
	s.until(run, 400)
	if now := run.Count(); now.Admitted == before.Admitted || now.Denied == before.Denied {
		s.Errorf("without an operator: %+v, then %+v; pods should go on with their shares", before, now)
	}
	s.none(run.Stop())
	s.judge(run)

	// New pods start, without the sidecar; they are replaced when the operator is back.
	s.scale(app, 4)
	bare := 0
	for _, p := range s.settled(app, 4) {
		if !injector.Injected(&p.Spec) {
			bare++
		}
	}
	if bare != 1 {
		s.Errorf("%d pods lack the sidecar, want the new one", bare)
	}
	s.scale(operator, 2)
	s.operatorReady()
	s.enforced(policy, 4)
	s.settled(app, 4)
}

// restrictedNamespace needs the chart without records: their folder of the node is what the restricted level forbids.
func restrictedNamespace(t *testing.T) {
	chart := *suite.chart
	chart.Records = ""
	s := newSpace(t, "pod-security.kubernetes.io/enforce", "restricted")
	s.must(chart.Install(s.ctx), "chart")
	s.Cleanup(func() { s.must(suite.chart.Install(context.WithoutCancel(s.ctx)), "chart") })
	app := s.app("app")
	// A Service by number cannot be redirected here; once it has gone, names do.
	number := app.Service()
	number.Name, number.Spec.Ports[0].TargetPort = "number", intstr.FromInt32(8080)
	s.must(suite.Create(s.ctx, number), "service")
	s.must(suite.Create(s.ctx, app.Deployment(2)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 20, 20))
	s.apply(policy)
	s.says(policy, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable, "restricted of namespace "+s.name)
	s.must(suite.Delete(s.ctx, number), "service")
	s.enforced(policy, 2)
	s.settled(app, 2)
	run := s.load(app, load.Client{Rate: 60, Connections: load.New})
	s.until(run, 200)
	s.none(run.Stop())
	if c := run.Count(); c.Admitted == 0 || c.Denied == 0 {
		s.Errorf("%+v", c)
	}
}
