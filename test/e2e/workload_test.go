//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

func twoPoliciesBothApply(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(2)), "deployment")
	total := s.policy("total", app.Name, perSecond("all", 40, 40))
	keys := s.policy("keys", app.Name, perKey(perSecond("per-key", 10, 10)))
	s.apply(total)
	s.apply(keys)
	s.enforced(total, 2)
	s.enforced(keys, 2)
	s.settled(app, 2)
	var clients []load.Client
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		clients = append(clients, load.Client{Key: key, Rate: 20, Connections: load.New})
	}
	run := s.load(app, clients...)
	s.until(run, 800)
	s.none(run.Stop())
	s.judge(run)
	denied := map[string]bool{}
	for _, f := range s.records() {
		for _, d := range f.Decisions {
			if !d.Admitted {
				denied[s.limits[d.Limit].Name] = true
			}
		}
	}
	if !denied["all"] || !denied["per-key"] {
		s.Errorf("only %v denied anything: six keys may have 60 per second, all together 40", denied)
	}
}

func twoTargetsShareOneLimit(t *testing.T) {
	s := newSpace(t)
	stable, canary := s.app("stable"), s.app("canary")
	s.must(suite.Create(s.ctx, stable.Deployment(2)), "deployment")
	s.must(suite.Create(s.ctx, canary.Deployment(1)), "deployment")
	policy := s.policy("both", stable.Name, equally(perSecond("all", 60, 60)))
	policy.Spec.TargetRefs = append(policy.Spec.TargetRefs, v1alpha1.TargetRef{Group: "apps", Kind: "Deployment", Name: canary.Name})
	s.apply(policy)
	s.enforced(policy, 3)
	s.settled(stable, 2)
	s.settled(canary, 1)
	one := s.load(stable, load.Client{Rate: 60, Connections: load.New})
	two := s.load(canary, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(one, 300)
	s.none(one.Stop())
	s.none(two.Stop())
	s.judge(one, two)
	if one.Count().Admitted <= two.Count().Admitted {
		s.Errorf("two pods admitted %+v, one pod %+v: each has a third of the limit", one.Count(), two.Count())
	}
}

func otherWorkloadsAreLimited(t *testing.T) {
	s := newSpace(t)
	set, daemon := s.app("set"), s.app("daemon")
	s.must(suite.Create(s.ctx, set.StatefulSet(2)), "stateful set")
	s.must(suite.Create(s.ctx, daemon.DaemonSet()), "daemon set")
	s.ready(set, 2)
	var nodes corev1.NodeList
	s.must(suite.List(s.ctx, &nodes), "nodes")
	each := len(nodes.Items)
	for _, w := range []struct {
		kind string
		app  *testbed.App
		pods int
	}{{"StatefulSet", set, 2}, {"DaemonSet", daemon, each}} {
		policy := s.policy(w.app.Name, w.app.Name, perSecond("all", 30, 30))
		policy.Spec.TargetRefs[0].Kind = w.kind
		s.apply(policy)
		s.enforced(policy, w.pods) // they run already, so they are restarted
		s.settled(w.app, w.pods)
		run := s.load(w.app, load.Client{Rate: 40, Connections: load.New}, load.Client{Rate: 40, Connections: load.Renewed})
		s.until(run, 300)
		s.none(run.Stop())
		if c := run.Count(); c.Denied == 0 || c.Admitted == 0 {
			s.Errorf("%s: %+v", w.kind, c)
		}
	}
	s.judge()
}

func policyComesFirst(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	policy := s.policy("all", app.Name, perSecond("all", 30, 30))
	s.apply(policy)
	s.says(policy, v1alpha1.ConditionAccepted, v1alpha1.ReasonTargetNotFound, app.Name)
	s.must(suite.Create(s.ctx, app.Deployment(2)), "deployment")
	s.enforced(policy, 2)
	s.settled(app, 2)
	var d appsv1.Deployment
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: app.Name}, &d), "deployment")
	if d.Status.ObservedGeneration != 1 {
		s.Errorf("the deployment was changed (generation %d), though its first pods could have had the sidecar", d.Status.ObservedGeneration)
	}
	run := s.load(app, load.Client{Rate: 80, Connections: load.New})
	s.until(run, 300)
	s.none(run.Stop())
	s.judge(run)
}

func wayAroundIsReported(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 20, 20))
	s.apply(policy)
	s.enforced(policy, 1)
	around := app.Service()
	around.Name = "around"
	around.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	s.must(suite.Create(s.ctx, around), "service")
	s.says(policy, v1alpha1.ConditionInjected, v1alpha1.ReasonBypassable, around.Name)
	s.must(suite.Delete(s.ctx, around), "service")
	s.enforced(policy, 1)
	// The sidecar goes with the last policy, as it came.
	s.must(suite.Delete(s.ctx, policy), "policy")
	waitFor(s, rollout, "the sidecar to go", func(ctx context.Context) error {
		pods, err := suite.Pods(ctx, app)
		if err != nil {
			return err
		}
		if len(pods) != 1 || injector.Injected(&pods[0].Spec) || !testbed.Ready(&pods[0]) {
			return fmt.Errorf("%d pods, and the first has it still, or is not ready", len(pods))
		}
		return nil
	})
}

// says waits until a condition is False, for a reason, with a message that holds a word.
func (s *space) says(p *v1alpha1.RateLimitPolicy, kind v1alpha1.ConditionType, reason v1alpha1.Reason, word string) {
	s.Helper()
	waitFor(s, soon, "policy "+p.Name, func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(reason) || !strings.Contains(c.Message, word) {
			return fmt.Errorf("condition %s is %+v, want reason %s and a message with %q", kind, c, reason, word)
		}
		return nil
	})
}

// trafficIsLeftAlone: the sidecar is there in mode None and stands in nobody's way; a pod with the label has none.
func trafficIsLeftAlone(t *testing.T) {
	s := newSpace(t)
	none := s.app("none")
	s.must(suite.Create(s.ctx, none.Deployment(1)), "deployment")
	asked := s.policy("none", none.Name, perSecond("all", 5, 5))
	asked.Spec.Injection.Mode = v1alpha1.None
	s.apply(asked)

	out := s.app("out")
	out.Labels = map[string]string{v1alpha1.LabelInject: "false"}
	s.must(suite.Create(s.ctx, out.Deployment(1)), "deployment")
	refused := s.policy("out", out.Name, perSecond("all", 5, 5))
	s.apply(refused)

	s.enforced(asked, 1)
	if pods := s.settled(none, 1); !injector.Injected(&pods[0].Spec) {
		s.Error("mode None: the sidecar is missing, so nobody can ask it")
	}
	if pods := s.settled(out, 1); injector.Injected(&pods[0].Spec) {
		s.Error("a pod that opted out got the sidecar")
	}
	s.says(refused, v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar, v1alpha1.LabelInject)
	for _, app := range []*testbed.App{none, out} {
		run := s.load(app, load.Client{Rate: 50, Connections: load.New})
		s.until(run, 100)
		s.none(run.Stop())
		if c := run.Count(); c.Denied > 0 {
			s.Errorf("%s: %+v, nothing should be denied", app.Name, c)
		}
	}
}
