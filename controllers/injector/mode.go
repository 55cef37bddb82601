// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Surroundings are what decides, beside the pod and its policies, how traffic can be made to reach the sidecar.
type Surroundings struct {
	// Services that select the pod.
	Services []corev1.Service
	// Namespace has the labels and annotations of the pod's namespace.
	Namespace metav1.ObjectMeta
	// Default is what the installation says where a policy does not.
	Default Default
}

// Default is what an installation says of injection for policies that do not. Empty: Auto and Automatic.
type Default struct {
	Mode    v1alpha1.InjectionMode
	Rollout v1alpha1.RolloutMode
}

// Said is what a policy says of injection, with what the installation says where it does not.
func (d Default) Said(p *v1alpha1.RateLimitPolicy) v1alpha1.Injection {
	said := p.Spec.Injection
	said.Mode = cmp.Or(said.Mode, d.Mode, v1alpha1.Auto)
	said.Rollout = cmp.Or(said.Rollout, d.Rollout, v1alpha1.Automatic)
	return said
}

// defaultSleep is the preStop sleep of an app container that has none: endpoints take a few seconds to drain.
const defaultSleep = 5

// LabelEnforce is the Pod Security level that a namespace enforces.
const LabelEnforce = "pod-security.kubernetes.io/enforce"

// PlanOf joins what policies (oldest first) and the surroundings of a pod say. The error wraps ErrNotInjectable and names
// every remedy.
func PlanOf(policies []*v1alpha1.RateLimitPolicy, pod *corev1.Pod, around Surroundings) (Plan, error) {
	if len(policies) == 0 {
		return Plan{Mode: v1alpha1.None}, nil
	}
	said := around.Default.Said(policies[0])
	plan := Plan{Mode: said.Mode, Sleep: defaultSleep, Image: said.Sidecar.Image, Mesh: Mesh(pod, around.Namespace), Rollout: said.Rollout}
	if said.PreStopSleepSeconds != nil {
		plan.Sleep = *said.PreStopSleepSeconds
	}
	if r := said.Sidecar.Resources; len(r.Requests)+len(r.Limits) > 0 {
		plan.Resources = &corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
	}
	for _, s := range said.Sidecar.ImagePullSecrets {
		plan.PullSecrets = append(plan.PullSecrets, s.Name)
	}
	if plan.Mode == v1alpha1.None {
		return plan, nil
	}
	plan.Ports = slices.Sorted(slices.Values(said.Ports))
	var err error
	switch plan.Mode {
	case v1alpha1.Auto:
		plan.Mode, err = choose(pod, plan, around)
	case v1alpha1.Redirect:
		err = redirectable(plan, around)
	}
	if len(plan.Ports) == 0 {
		plan.Ports = targeted(around.Services, plan.Mode)
	}
	return plan, err
}

// choose is mode Auto: NamedPort needs no privileges, Redirect needs no names.
func choose(pod *corev1.Pod, plan Plan, around Surroundings) (v1alpha1.InjectionMode, error) {
	why := unnamed(pod, plan.Ports, around.Services)
	if why == "" && !onlyHeadless(around.Services) {
		return v1alpha1.NamedPort, nil
	}
	cannot := redirectable(plan, around)
	switch {
	case cannot == nil:
		return v1alpha1.Redirect, nil
	case why == "": // reached by name where clients ask for it; what goes around is reported
		return v1alpha1.NamedPort, nil
	}
	return "", fmt.Errorf("%w: mode NamedPort does not fit, since %s; and %s", ErrNotInjectable, why, strings.TrimPrefix(cannot.Error(), ErrNotInjectable.Error()+": "))
}

// unnamed says what keeps the sidecar from being reached through port names alone; nothing when it can be.
func unnamed(pod *corev1.Pod, ports []string, services []corev1.Service) string {
	for i := range services {
		for _, p := range services[i].Spec.Ports {
			if isTCP(p.Protocol) && p.TargetPort.Type == intstr.Int && !headless(&services[i]) {
				return fmt.Sprintf("Service %s targets port %s by number (let it target the port by its name, targetPort: <name>)", services[i].Name, number(p))
			}
		}
	}
	named := false
	taken := map[string]bool{}
	for _, c := range serving(&pod.Spec) {
		for _, p := range c.Ports {
			if p.Name != "" && isTCP(p.Protocol) {
				named = true
				taken[p.Name], taken[strconv.Itoa(int(p.ContainerPort))] = true, true
			}
		}
	}
	for _, p := range ports {
		if !taken[p] {
			return fmt.Sprintf("no TCP container port %s has a name (ports: [{name: http, containerPort: 8080}])", p)
		}
	}
	if !named {
		return "no TCP container port is named (ports: [{name: http, containerPort: 8080}])"
	}
	return ""
}

// redirectable says why mode Redirect must not be used here; nil when it may.
func redirectable(plan Plan, around Surroundings) error {
	if level := around.Namespace.Labels[LabelEnforce]; level != "" && level != "privileged" {
		return fmt.Errorf("%w: mode Redirect needs an init container with NET_ADMIN, which the Pod Security level %s of namespace %s forbids: name the ports (ports: [{name: http, containerPort: 8080}]), let the Services target the names (targetPort: http) and use mode NamedPort, or allow it: kubectl label namespace %[3]s --overwrite %[4]s=privileged",
			ErrNotInjectable, level, around.Namespace.Name, LabelEnforce)
	}
	if plan.Mesh != "" {
		return besideMesh(plan.Mesh)
	}
	return nil
}

// targeted lists, in order, the ports that Services target: names, and numbers where the mode can intercept them.
func targeted(services []corev1.Service, mode v1alpha1.InjectionMode) []string {
	var ports []string
	for i := range services {
		for _, p := range services[i].Spec.Ports {
			switch {
			case !isTCP(p.Protocol) || services[i].Spec.Type == corev1.ServiceTypeExternalName:
			case p.TargetPort.Type == intstr.String:
				ports = append(ports, p.TargetPort.StrVal)
			case mode == v1alpha1.Redirect:
				ports = append(ports, number(p))
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// number is the port that a Service targets by number: its own, where none is given.
func number(p corev1.ServicePort) string {
	return strconv.Itoa(int(cmp.Or(p.TargetPort.IntVal, p.Port)))
}

func headless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }

func onlyHeadless(services []corev1.Service) bool {
	return len(services) > 0 && !slices.ContainsFunc(services, func(s corev1.Service) bool { return !headless(&s) })
}
