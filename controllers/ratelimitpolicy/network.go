// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// selectsPod reports whether a NetworkPolicy restricts what reaches a pod.
func selectsPod(n *networkingv1.NetworkPolicy, pod map[string]string) bool {
	if len(n.Spec.PolicyTypes) > 0 && !slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&n.Spec.PodSelector)
	return err == nil && selector.Matches(labels.Set(pod))
}

// networks finds ports of the app that NetworkPolicies admit while they keep clients from the sidecar's listener before it:
// requests through a Service are then lost, and direct ones go around the sidecar.
func (v *vantage) networks() []string {
	if len(v.w.networks) == 0 {
		return nil
	}
	var out []string
	for i, app := range v.apps {
		listener := quotav1.PortInbound + int32(i)
		by := ""
		closed := true
		for j := range v.w.networks {
			n := &v.w.networks[j]
			for _, rule := range n.Spec.Ingress {
				if v.admits(rule, app) && by == "" {
					by = n.Name
				}
				closed = closed && !v.admits(rule, listener)
			}
		}
		if by != "" && closed {
			out = append(out, fmt.Sprintf("NetworkPolicy %s admits port %d and not the sidecar's port %d before it: let it name the port (port: <name>) in place of the number, or write injection.mode: Redirect", by, app, listener))
		}
	}
	return out
}

// admits reports whether a rule lets somebody reach a port of the pod.
func (v *vantage) admits(rule networkingv1.NetworkPolicyIngressRule, port int32) bool {
	if len(rule.Ports) == 0 {
		return true
	}
	for _, p := range rule.Ports {
		switch {
		case p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP:
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if n, ok := v.resolve(corev1.ServicePort{TargetPort: *p.Port}); ok && n == port {
				return true
			}
		case p.EndPort != nil:
			if port >= p.Port.IntVal && port <= *p.EndPort {
				return true
			}
		case p.Port.IntVal == port:
			return true
		}
	}
	return false
}
