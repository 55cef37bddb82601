// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/ratelimitpolicy"
)

// An installation whose operator may neither restart workloads nor touch every namespace.
func TestWhatAnInstallationMayNotDoIsSaid(t *testing.T) {
	w := start(t, func(s *ratelimitpolicy.Settings) {
		s.NoRollouts = true
		s.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	})
	for name, f := range map[string]func(t *testing.T, ns string){
		"a restart that it may not make is left to a person, who is told how": w.restartIsNotAllowed,
		"a namespace that it may not touch is told which label it lacks":      w.namespaceIsOutside,
	} {
		t.Run(name, func(t *testing.T) { f(t, w.namespace(t)) })
	}
}

// let labels a namespace as one that the installation may touch.
func (w *world) let(namespace string) {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	w.must(w.Patch(context.Background(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"shop"}}}`))))
}

func (w *world) restartIsNotAllowed(t *testing.T, ns string) {
	w.t = t
	w.let(ns)
	d := w.deployment(ns, "checkout")
	w.pod(d)
	p := w.policy(ns)
	c := w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar)
	for _, want := range []string{"rollout.enabled", "kubectl rollout restart deployment/checkout -n " + ns} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("%q does not name %s", c.Message, want)
		}
	}
	// A restart would begin once the policy is a second old.
	time.Sleep(2 * time.Second)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if a := d.Spec.Template.Annotations; len(a) > 0 {
		t.Errorf("the workload was restarted: %v", a)
	}
}

func (w *world) namespaceIsOutside(t *testing.T, ns string) {
	w.t = t
	w.pod(w.deployment(ns, "checkout"))
	p := w.policy(ns)
	c := w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable)
	for _, want := range []string{"team=shop", "kubectl label namespace " + ns} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("%q does not name %s", c.Message, want)
		}
	}
	// Labelled, it is taken at once; and the webhook asks for the label, too, so that taking it away works without Headgate.
	w.let(ns)
	w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar)
	w.eventually(func() string {
		var hook admissionregistrationv1.MutatingWebhookConfiguration
		w.must(w.Get(t.Context(), client.ObjectKey{Name: "headgate-operator"}, &hook))
		if s := hook.Webhooks[0].NamespaceSelector; s == nil || s.MatchLabels["team"] != "shop" {
			return "the webhook does not ask for the label"
		}
		return ""
	})
}
