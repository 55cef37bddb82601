// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
)

// bypasses finds the ways on which requests reach the app of an injected workload around the sidecar, or do not reach the
// sidecar at all, and says how to close each. It is a pure function of what the survey found.
func bypasses(w *surveyed) []string {
	var out []string
	for _, pod := range w.pods {
		mode := v1alpha1.InjectionMode(pod.Annotations[v1alpha1.AnnotationMode])
		if !injector.Injected(&pod.Spec) || mode == v1alpha1.None {
			continue
		}
		v := vantage{w: w, pod: pod, mode: mode, apps: injector.AppPorts(pod.Annotations[v1alpha1.AnnotationPorts])}
		for i := range w.around.Services {
			out = append(out, v.service(&w.around.Services[i])...)
		}
		if mode == v1alpha1.NamedPort {
			out = append(out, v.networks()...)
		}
		if mesh := injector.Mesh(pod, w.around.Namespace); mode == v1alpha1.Redirect && mesh != "" {
			out = append(out, fmt.Sprintf("the sidecar of %s in pod %s reaches the app around the redirect: write injection.mode: NamedPort, or keep %[1]s out of the pod", mesh, pod.Name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// vantage is one pod, from which its surroundings are judged.
type vantage struct {
	w    *surveyed
	pod  *corev1.Pod
	mode v1alpha1.InjectionMode
	apps []int32 // the app's ports that the sidecar stands before
}

// service judges each port of a Service.
func (v *vantage) service(s *corev1.Service) []string {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	var out []string
	for _, p := range s.Spec.Ports {
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			continue
		}
		number, ok := v.resolve(p)
		switch {
		case !ok: // no pod has it, so it leads nowhere
		case s.Spec.ClusterIP == corev1.ClusterIPNone && v.mode == v1alpha1.NamedPort && (v.listens(number) || slices.Contains(v.apps, number)):
			out = append(out, fmt.Sprintf("headless Service %s gives clients the pods' addresses, and those that dial the app's own port (%s) go around the sidecar: write injection.mode: Redirect, or let clients use a Service with an address", s.Name, v.list()))
		case v.listens(number):
		case slices.Contains(v.apps, number):
			if v.mode == v1alpha1.NamedPort {
				out = append(out, fmt.Sprintf("Service %s (targetPort %s) leads around the sidecar: let it target the port by its name (targetPort: <name>), or write injection.mode: Redirect", s.Name, p.TargetPort.String()))
			}
		case len(v.w.said.Ports) > 0: // the policy says which ports are limited, and this is none of them
		case v.mode == v1alpha1.NamedPort && p.TargetPort.Type == intstr.Int:
			out = append(out, fmt.Sprintf("Service %s (targetPort %s) leads around the sidecar: let it target a port by its name (targetPort: <name>), or list the ports to limit in injection.ports", s.Name, p.TargetPort.String()))
		default:
			out = append(out, fmt.Sprintf("Service %s (targetPort %s) came after the pods, whose sidecars do not stand before that port: %s, or list the ports to limit in injection.ports", s.Name, p.TargetPort.String(), restartCommand(v.w.Workload)))
		}
	}
	return out
}

// resolve finds the pod's port that a Service's port leads to, as the endpoints controller does.
func (v *vantage) resolve(p corev1.ServicePort) (int32, bool) {
	if p.TargetPort.Type == intstr.Int {
		return cmp.Or(p.TargetPort.IntVal, p.Port), true
	}
	for _, list := range [][]corev1.Container{v.pod.Spec.Containers, v.pod.Spec.InitContainers} {
		for i := range list {
			for _, have := range list[i].Ports {
				if have.Name == p.TargetPort.StrVal && (have.Protocol == "" || have.Protocol == corev1.ProtocolTCP) {
					return have.ContainerPort, true
				}
			}
		}
	}
	return 0, false
}

// listens reports whether a port is one of the sidecar's listeners.
func (v *vantage) listens(port int32) bool {
	return port >= quotav1.PortInbound && port < quotav1.PortInbound+int32(len(v.apps))
}

func (v *vantage) list() string {
	words := make([]string, len(v.apps))
	for i, p := range v.apps {
		words[i] = strconv.Itoa(int(p))
	}
	return strings.Join(words, ", ")
}
