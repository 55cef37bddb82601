// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

func svc(name string, targets ...intstr.IntOrString) corev1.Service {
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}
	for _, t := range targets {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80, TargetPort: t})
	}
	return s
}

func admits(name string, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicy {
	return networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: ports}}}}
}

func TestEveryWayAroundTheSidecarIsNamedWithItsMend(t *testing.T) {
	var (
		number    = intstr.FromInt32
		name      = intstr.FromString
		headless  = svc("pods", name("http"))
		bySidecar = svc("odd", number(14101))
		port      = func(p intstr.IntOrString) networkingv1.NetworkPolicyPort {
			return networkingv1.NetworkPolicyPort{Port: &p}
		}
	)
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	far := port(number(8000))
	far.EndPort = new(int32(9000))
	wide := port(number(1))
	wide.EndPort = new(int32(65535))
	dns := port(number(8080))
	dns.Protocol = new(corev1.ProtocolUDP)

	for title, tc := range map[string]struct {
		mode     v1alpha1.InjectionMode
		ports    []string
		services []corev1.Service
		networks []networkingv1.NetworkPolicy
		labels   map[string]string // of the namespace
		want     []string          // words of the one finding; none = no way around
	}{
		"a Service by name": {mode: v1alpha1.NamedPort, services: []corev1.Service{svc("a", name("http"))}},
		"a Service by the app's number": {mode: v1alpha1.NamedPort, services: []corev1.Service{svc("a", number(8080))},
			want: []string{"Service a (targetPort 8080)", "targetPort: <name>"}},
		"a Service by the app's number, redirected": {mode: v1alpha1.Redirect, services: []corev1.Service{svc("a", number(8080))}},
		"a Service by the sidecar's number":         {mode: v1alpha1.NamedPort, services: []corev1.Service{bySidecar}},
		"a Service by another number": {mode: v1alpha1.NamedPort, services: []corev1.Service{svc("a", number(9090))},
			want: []string{"Service a (targetPort 9090)", "injection.ports"}},
		"a Service by another number, where the policy says which ports": {mode: v1alpha1.NamedPort, ports: []string{"http"}, services: []corev1.Service{svc("a", number(9090))}},
		"a Service that came later, by number": {mode: v1alpha1.Redirect, services: []corev1.Service{svc("a", number(9090))},
			want: []string{"Service a (targetPort 9090) came after", "kubectl rollout restart deployment/checkout -n shop"}},
		"a Service that came later, by another name": {mode: v1alpha1.NamedPort, services: []corev1.Service{svc("a", name("metrics"))},
			want: []string{"Service a (targetPort metrics) came after", "kubectl rollout restart"}},
		"a Service by a name that no pod has": {mode: v1alpha1.NamedPort, services: []corev1.Service{svc("a", name("nothing"))}},
		"a headless Service": {mode: v1alpha1.NamedPort, services: []corev1.Service{headless},
			want: []string{"headless Service pods", "(8080)", "injection.mode: Redirect"}},
		"a headless Service, redirected": {mode: v1alpha1.Redirect, services: []corev1.Service{headless}},
		"mode None":                      {mode: v1alpha1.None, services: []corev1.Service{svc("a", number(8080))}},
		"a NetworkPolicy that admits the app's number alone": {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", port(number(8080)))},
			want: []string{"NetworkPolicy web admits port 8080 and not", "14101", "port: <name>"}},
		"a NetworkPolicy that admits a range with the app's number": {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", far)},
			want: []string{"NetworkPolicy web"}},
		"a NetworkPolicy that admits the name":                     {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", port(name("http")))}},
		"a NetworkPolicy that admits every port":                   {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web")}},
		"a NetworkPolicy that admits a range with both":            {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", wide)}},
		"a NetworkPolicy for another protocol":                     {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", dns)}},
		"two NetworkPolicies that admit both together":             {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("a", port(number(8080))), admits("b", port(name("http")))}},
		"a NetworkPolicy that admits the app's number, redirected": {mode: v1alpha1.Redirect, networks: []networkingv1.NetworkPolicy{admits("web", port(number(8080)))}},
		"a NetworkPolicy that admits nothing of either of the two": {mode: v1alpha1.NamedPort, networks: []networkingv1.NetworkPolicy{admits("web", port(number(22)))}},
		"a mesh that came after a redirect": {mode: v1alpha1.Redirect, labels: map[string]string{"istio-injection": "enabled"},
			want: []string{"the sidecar of Istio", "injection.mode: NamedPort"}},
	} {
		t.Run(title, func(t *testing.T) {
			said := v1alpha1.Injection{Mode: tc.mode, Ports: tc.ports}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "checkout-1", Namespace: "shop"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9100}},
			}}}}
			plan := injector.Plan{Mode: tc.mode, Ports: []string{"http"}}
			if tc.mode == v1alpha1.None {
				plan.Ports = nil
			}
			injected, err := injector.Inject(pod, injector.Config{Image: "sidecar"}, plan)
			if err != nil {
				t.Fatal(err)
			}
			got := bypasses(&surveyed{
				Workload: target.Workload{Kind: "Deployment", Namespace: "shop", Name: "checkout"}, said: said, plan: plan,
				around:   injector.Surroundings{Services: tc.services, Namespace: metav1.ObjectMeta{Labels: tc.labels}},
				networks: tc.networks, pods: []*corev1.Pod{injected, injected.DeepCopy()},
			})
			if len(tc.want) == 0 && len(got) > 0 || len(tc.want) > 0 && len(got) != 1 {
				t.Fatalf("found %q", got)
			}
			for _, word := range tc.want {
				if !strings.Contains(got[0], word) {
					t.Errorf("%q does not say %q", got[0], word)
				}
			}
		})
	}
}

func TestOnlyNetworkPoliciesForWhatComesInCount(t *testing.T) {
	for name, tc := range map[string]struct {
		spec networkingv1.NetworkPolicySpec
		want bool
	}{
		"all pods":       {networkingv1.NetworkPolicySpec{}, true},
		"these pods":     {networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}, true},
		"other pods":     {networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}}, false},
		"what goes out":  {networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}, false},
		"both direction": {networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := selectsPod(&networkingv1.NetworkPolicy{Spec: tc.spec}, map[string]string{"app": "a"}); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
