// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injector decides what a pod with the sidecar looks like. Inject is a pure function of the pod and the
// configuration; the webhook around it finds out which policies cover the pod.
package injector

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
)

// Config is what the installation says about every sidecar.
type Config struct {
	// Image of the sidecar.
	Image string
	// PullPolicy of that image; empty = Kubernetes' default.
	PullPolicy corev1.PullPolicy
	// Operator is host:port of the quota service, as pods reach it.
	Operator string
	// CAConfigMap is the ConfigMap, in the pod's namespace, that holds the operator's CA.
	CAConfigMap string
	// Resources of the sidecar.
	Resources corev1.ResourceRequirements
	// RecordHostPath is a folder of the node for decision records (tests only); empty = none. The restricted Pod Security
	// Standard does not allow it.
	RecordHostPath string
}

// Plan is what the policies of a pod say about its injection.
type Plan struct {
	Mode v1alpha1.InjectionMode
	// Ports are the names of the ports to intercept; empty = every named TCP port.
	Ports []string
}

// ErrNotInjectable wraps the reason why a pod never gets the sidecar.
var ErrNotInjectable = errors.New("not injectable")

// appPreStopSeconds keeps an app that has no preStop hook alive while endpoints drain: a native sidecar's own SIGTERM comes
// only after the app has ended.
const appPreStopSeconds = 5

const (
	volumeIdentity = "headgate-identity"
	volumeRecords  = "headgate-records"
	userID         = 65532
	tokenSeconds   = 3600
)

// Injected reports whether a pod carries the sidecar.
func Injected(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == quotav1.ContainerName })
}

// Refuse says why a pod must not get the sidecar, or returns nil.
func Refuse(pod *corev1.Pod) error {
	switch {
	case target.OptedOut(pod.Labels):
		return fmt.Errorf("%w: label %s is false", ErrNotInjectable, v1alpha1.LabelInject)
	case pod.Spec.HostNetwork:
		return fmt.Errorf("%w: hostNetwork pods share the node's ports", ErrNotInjectable)
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return fmt.Errorf("%w: a static pod cannot be changed", ErrNotInjectable)
	case pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows:
		return fmt.Errorf("%w: the sidecar does not run on Windows", ErrNotInjectable)
	}
	return nil
}

// Inject returns the pod with the sidecar. It changes nothing of its arguments, and injecting twice equals injecting once.
func Inject(pod *corev1.Pod, cfg Config, plan Plan) (*corev1.Pod, error) {
	if err := Refuse(pod); err != nil {
		return nil, err
	}
	out := pod.DeepCopy()
	if Injected(&out.Spec) {
		return out, nil
	}
	var pairs []portPair
	if plan.Mode != v1alpha1.None {
		pairs = takePorts(&out.Spec, plan.Ports)
		if len(pairs) == 0 {
			return nil, fmt.Errorf("%w: no TCP container port is named%s: name the port (ports: [{name: http, containerPort: 8080}]) and let the Service target the name (targetPort: http), or write injection.mode: None",
				ErrNotInjectable, oneOf(plan.Ports))
		}
		if len(pairs) > quotav1.MaxInbound {
			return nil, fmt.Errorf("%w: %d ports are more than the %d that a sidecar serves: list the ones to limit in injection.ports", ErrNotInjectable, len(pairs), quotav1.MaxInbound)
		}
	}
	for i := range out.Spec.Containers {
		keepAlive(&out.Spec.Containers[i])
	}
	out.Spec.InitContainers = append(out.Spec.InitContainers, container(cfg, pairs, guaranteed(&pod.Spec)))
	out.Spec.Volumes = append(out.Spec.Volumes, volumes(cfg)...)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[v1alpha1.LabelInjected] = "true"
	return out, nil
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " " + strings.Join(names, " or ")
}

// keepAlive gives a container without a preStop hook a short sleep.
func keepAlive(c *corev1.Container) {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	if c.Lifecycle.PreStop == nil {
		c.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: appPreStopSeconds}}
	}
}

// Hash names what an injection makes of a pod template: the workload is restarted once for each value. The installation's
// image is left out on purpose: an upgrade of the operator must not restart every workload of the cluster at once.
func Hash(plan Plan) string {
	b, err := json.Marshal(plan)
	if err != nil {
		panic(fmt.Sprintf("injector: marshal plan: %v", err)) // strings only
	}
	sum := sha256.Sum256(append([]byte("v1 "), b...))
	return hex.EncodeToString(sum[:6])
}

// PlanOf joins what policies (oldest first) and the Services that select the pod say.
func PlanOf(policies []*v1alpha1.RateLimitPolicy, services []corev1.Service) Plan {
	if len(policies) == 0 {
		return Plan{Mode: v1alpha1.None}
	}
	first := policies[0].Spec.Injection
	plan := Plan{Mode: first.Mode, Ports: slices.Sorted(slices.Values(first.Ports))}
	if plan.Mode == "" {
		plan.Mode = v1alpha1.NamedPort
	}
	if plan.Mode == v1alpha1.None {
		plan.Ports = nil
	} else if len(plan.Ports) == 0 {
		plan.Ports = TargetedNames(services)
	}
	return plan
}

// TargetedNames lists, in order, the port names that Services target.
func TargetedNames(services []corev1.Service) []string {
	var names []string
	for i := range services {
		for _, p := range services[i].Spec.Ports {
			if p.TargetPort.StrVal != "" && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
				names = append(names, p.TargetPort.StrVal)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Selecting returns the Services that select any of the pods whose labels are given.
func Selecting(services []corev1.Service, pods ...map[string]string) []corev1.Service {
	var out []corev1.Service
	for i := range services {
		if len(services[i].Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(services[i].Spec.Selector)
		if slices.ContainsFunc(pods, func(p map[string]string) bool { return selector.Matches(labels.Set(p)) }) {
			out = append(out, services[i])
		}
	}
	return out
}
