// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

func TestPolicies(t *testing.T) {
	w := start(t)
	tests := map[string]func(t *testing.T, ns string){
		"a policy may come before its workload": func(t *testing.T, ns string) {
			p := w.policy(ns)
			c := w.wantCondition(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonTargetNotFound)
			if !strings.Contains(c.Message, "Deployment/checkout not found in namespace "+ns) {
				t.Errorf("message %q does not name the target", c.Message)
			}
			w.wantCondition(p, v1alpha1.ConditionProgrammed, v1alpha1.ReasonReconciling)
			w.deployment(ns, "checkout")
			w.wantCondition(p, v1alpha1.ConditionProgrammed, v1alpha1.ReasonProgrammed)
			w.wantCondition(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted)
			w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonNoPods)
		},
		"a workload without the sidecar is restarted, once": func(t *testing.T, ns string) {
			d := w.deployment(ns, "checkout")
			w.pod(d)
			p := w.policy(ns)
			w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar)
			w.eventually(func() string {
				w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
				if d.Spec.Template.Annotations[v1alpha1.AnnotationInjection] == "" {
					return "the pod template has no annotation"
				}
				return ""
			})
			generation := d.Generation
			w.edit(p, func() { p.Spec.Limits[0].Rate.Requests = 7 })
			w.wantCondition(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted)
			w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			if d.Generation != generation {
				t.Error("another rate restarted the workload")
			}
		},
		"with rollout Manual the person is told what to type": func(t *testing.T, ns string) {
			d := w.deployment(ns, "checkout")
			w.pod(d)
			p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Injection.Rollout = v1alpha1.Manual })
			w.wantMessage(p, v1alpha1.ConditionInjected, "kubectl rollout restart deployment/checkout -n "+ns)
			w.must(w.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			if d.Generation != 1 {
				t.Error("the workload was changed")
			}
		},
		"a paused workload is left to the person": func(_ *testing.T, ns string) {
			w.pod(w.deployment(ns, "checkout", func(d *appsv1.Deployment) { d.Spec.Paused = true }))
			w.wantMessage(w.policy(ns), v1alpha1.ConditionInjected, "it is paused")
		},
		"a pod that cannot have the sidecar is named with the reason": func(_ *testing.T, ns string) {
			d := w.deployment(ns, "checkout")
			w.pod(d, func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].Name = "" })
			p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Injection.Mode = v1alpha1.NamedPort })
			w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable)
			w.wantMessage(p, v1alpha1.ConditionInjected, "no TCP container port is named")
		},
		"a Service that goes around the sidecar is named": func(t *testing.T, ns string) {
			d := w.deployment(ns, "checkout")
			p := w.policy(ns)
			w.pod(d, w.injected(p), func(p *corev1.Pod) {
				p.Spec.InitContainers[0].Image = "registry.example/sidecar:v2"
			})
			w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonInjected)
			w.must(w.Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "direct", Namespace: ns},
				Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "checkout"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}}},
			}))
			c := w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonBypassable)
			if !strings.Contains(c.Message, "direct (targetPort 8080)") {
				t.Errorf("message %q does not name the Service", c.Message)
			}
		},
		"only namespaces with policies depend on the webhook, and they have the CA": func(t *testing.T, ns string) {
			p := w.policy(ns)
			w.eventually(func() string {
				if !slices.Contains(w.selected(), ns) {
					return "the webhook does not select " + ns
				}
				return ""
			})
			hook := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "headgate-operator"}}
			w.edit(hook, func() { hook.Webhooks[0].Rules = nil })
			w.eventually(func() string {
				if !slices.Contains(w.selected(), ns) {
					return "somebody took the webhook's rules away, and nobody put them back"
				}
				return ""
			})
			var ca corev1.ConfigMap
			w.must(w.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "headgate-ca"}, &ca))
			if ca.Data["ca.crt"] != "a certificate" {
				t.Errorf("CA is %q", ca.Data["ca.crt"])
			}
			w.must(w.Delete(t.Context(), p))
			w.eventually(func() string {
				if slices.Contains(w.selected(), ns) {
					return "the webhook still selects " + ns
				}
				return ""
			})
		},
		"a release is acted on once, so that a later pod of the same name is not taken for the one that was meant": func(t *testing.T, ns string) {
			p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) {
				p.Annotations = map[string]string{v1alpha1.AnnotationRelease: "db-0, db-1", "other": "stays"}
			})
			w.eventually(func() string {
				w.must(w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
				if p.Annotations[v1alpha1.AnnotationRelease] != "" || p.Annotations["other"] != "stays" {
					return fmt.Sprintf("annotations are %v", p.Annotations)
				}
				return ""
			})
			w.event(p, v1alpha1.EventNotReleased, "No share of pod db-0, db-1 is reserved")
		},
		"the first fill of a limit is marked once and the mark stays": func(t *testing.T, ns string) {
			w.deployment(ns, "checkout")
			p := w.policy(ns)
			w.wantCondition(p, v1alpha1.ConditionProgrammed, v1alpha1.ReasonProgrammed)
			mark := p.Status.Limits[0].FirstFill
			if mark.IsZero() {
				t.Fatal("no mark")
			}
			w.edit(p, func() {
				p.Spec.Limits = append(p.Spec.Limits, v1alpha1.Limit{Name: "more", Rate: v1alpha1.Rate{Requests: 1, Per: "1s"}})
			})
			w.wantCondition(p, v1alpha1.ConditionProgrammed, v1alpha1.ReasonProgrammed)
			w.eventually(func() string {
				w.must(w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
				if len(p.Status.Limits) != 2 {
					return "the new limit is not in the status"
				}
				return ""
			})
			if !p.Status.Limits[0].FirstFill.Equal(mark) {
				t.Errorf("the mark moved from %v to %v", mark, p.Status.Limits[0].FirstFill)
			}
		},
		"of two policies that ask for different injections the younger is told": func(t *testing.T, ns string) {
			w.deployment(ns, "checkout")
			w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "a-older" })
			p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "b-younger"; p.Spec.Injection.Mode = v1alpha1.None })
			c := w.wantCondition(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonConflicted)
			if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "a-older") {
				t.Errorf("condition %+v must be True and name the older policy", c)
			}
		},
		"a younger policy that answers clients otherwise is told that the older one decides": func(t *testing.T, ns string) {
			w.deployment(ns, "checkout")
			w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "a-silent" })
			w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "b-older"; p.Spec.Response.Body = "older" })
			p := w.policy(ns, func(p *v1alpha1.RateLimitPolicy) { p.Name = "c-younger"; p.Spec.Response.Body = "younger" })
			c := w.wantCondition(p, v1alpha1.ConditionAccepted, v1alpha1.ReasonConflicted)
			if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "spec.response is taken from the older policy b-older") {
				t.Errorf("condition %+v must be True and name the older policy", c)
			}
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) { f(t, w.namespace(t)) })
	}
	t.Run("pods of the operator's own namespace are never injected", func(t *testing.T) {
		w.t = t
		w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "headgate-system"}}))
		p := w.policy("headgate-system")
		w.wantCondition(p, v1alpha1.ConditionInjected, v1alpha1.ReasonNotInjectable)
		if slices.Contains(w.selected(), "headgate-system") {
			t.Error("the webhook selects the operator's own namespace: it could not start again")
		}
	})
}

// selected lists the namespaces that the webhook selects.
func (w *world) selected() []string {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	w.must(w.Get(context.Background(), types.NamespacedName{Name: "headgate-operator"}, &c))
	if s := c.Webhooks[0].NamespaceSelector; len(c.Webhooks[0].Rules) == 1 && s != nil && len(s.MatchExpressions) == 1 {
		return s.MatchExpressions[0].Values
	}
	return nil
}

// wantMessage waits until a condition says something.
func (w *world) wantMessage(p *v1alpha1.RateLimitPolicy, kind v1alpha1.ConditionType, part string) {
	w.t.Helper()
	w.eventually(func() string {
		w.must(w.Get(context.Background(), client.ObjectKeyFromObject(p), p))
		for _, c := range p.Status.Conditions {
			if c.Type == string(kind) && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, part) {
				return ""
			}
		}
		return fmt.Sprintf("no condition %s=False says %q: %+v", kind, part, p.Status.Conditions)
	})
}
