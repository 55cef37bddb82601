// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injector decides what a pod with the sidecar looks like. Inject is a pure function of the pod, the configuration
// and the plan; PlanOf makes the plan from what policies and the pod's surroundings say; the webhook finds both out.
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

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Config is what the installation says about every sidecar.
type Config struct {
	// Image of the sidecar.
	Image string
	// PullPolicy of that image; empty = Kubernetes' default.
	PullPolicy corev1.PullPolicy
	// PullSecrets are added to every injected pod; they must exist in its namespace.
	PullSecrets []string
	// Operator is host:port of the quota service, as pods reach it.
	Operator string
	// CAConfigMap is the ConfigMap, in the pod's namespace, that holds the operator's CA.
	CAConfigMap string
	// Resources of the sidecar.
	Resources corev1.ResourceRequirements
	// RecordHostPath is a folder of the node for decision records (tests only); empty = none. The restricted Pod Security
	// Standard does not allow it.
	RecordHostPath string
	// Default is what holds where a policy does not say.
	Default Default
}

// Plan is what the policies of a pod say about its injection.
type Plan struct {
	// Mode is never Auto: PlanOf has chosen.
	Mode v1alpha1.InjectionMode
	// Ports are the ports to intercept, by name or number; empty = every TCP port that the pod declares (with a name, in
	// mode NamedPort).
	Ports []string
	// Sleep is the preStop sleep of app containers that have none, in seconds; 0 = none.
	Sleep int32
	// Image, Resources and PullSecrets override the installation's.
	Image       string                       `json:",omitempty"`
	Resources   *corev1.ResourceRequirements `json:",omitempty"`
	PullSecrets []string                     `json:",omitempty"`
	// Mesh whose sidecar the pod has or will get; empty = none.
	Mesh string `json:"-"`
	// Rollout is noted on the pod, and changes nothing of it otherwise.
	Rollout v1alpha1.RolloutMode `json:"-"`
}

// ErrNotInjectable wraps the reason why a pod never gets the sidecar.
var ErrNotInjectable = errors.New("not injectable")

// Injected reports whether a pod carries the sidecar.
func Injected(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == quotav1.ContainerName })
}

// Image returns the image of a pod's sidecar, or nothing.
func Image(spec *corev1.PodSpec) string {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == quotav1.ContainerName {
			return spec.InitContainers[i].Image
		}
	}
	return ""
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
	cfg = cfg.with(plan)
	before := &original{}
	pairs, err := takePorts(&out.Spec, plan, before)
	if err != nil {
		return nil, err
	}
	sidecar := container(cfg, pairs, guaranteed(&pod.Spec))
	added := []corev1.Container{sidecar}
	if plan.Mode == v1alpha1.Redirect {
		if plan.Mesh != "" {
			return nil, besideMesh(plan.Mesh)
		}
		if text := takeProbes(&out.Spec, pairs, before); text != "" {
			added[0].Env = slices.Insert(added[0].Env, 2, corev1.EnvVar{Name: quotav1.EnvProbes, Value: text})
		}
		added = []corev1.Container{redirectContainer(&sidecar, pairs), added[0]}
	}
	if plan.Sleep > 0 {
		for i := range out.Spec.Containers {
			if c := &out.Spec.Containers[i]; keepAlive(c, plan, out.Spec.TerminationGracePeriodSeconds) {
				before.Sleep = append(before.Sleep, c.Name)
			}
		}
	}
	out.Spec.InitContainers = slices.Insert(out.Spec.InitContainers, place(&out.Spec, pairs), added...)
	out.Spec.Volumes = append(out.Spec.Volumes, volumes(cfg)...)
	for _, name := range cfg.PullSecrets {
		if secret := (corev1.LocalObjectReference{Name: name}); !slices.Contains(out.Spec.ImagePullSecrets, secret) {
			out.Spec.ImagePullSecrets = append(out.Spec.ImagePullSecrets, secret)
			before.PullSecrets = append(before.PullSecrets, name)
		}
	}
	mark(out, plan, pairs)
	before.Mesh = exemptFromMesh(out, plan.Mesh)
	before.write(out)
	return out, nil
}

// with returns the configuration of one policy's sidecars.
func (c Config) with(plan Plan) Config {
	if plan.Image != "" {
		c.Image = plan.Image
	}
	if plan.Resources != nil {
		c.Resources = *plan.Resources
	}
	c.PullSecrets = append(slices.Clone(c.PullSecrets), plan.PullSecrets...)
	return c
}

// ImageOf is the image that a pod injected now would have.
func (c Config) ImageOf(plan Plan) string { return c.with(plan).Image }

// mark notes on the pod what was done to it, for people and for the controller.
func mark(pod *corev1.Pod, plan Plan, pairs []portPair) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[v1alpha1.LabelInjected] = "true"
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[v1alpha1.AnnotationMode] = string(plan.Mode)
	if len(pairs) > 0 {
		pod.Annotations[v1alpha1.AnnotationPorts] = encode(pairs)
	}
	if plan.Rollout != "" {
		pod.Annotations[v1alpha1.AnnotationRollout] = string(plan.Rollout)
	}
}

// place is where among the init containers the sidecar goes: behind those that run to their end, and before native sidecars
// of the app that serve an intercepted port, since their start is asked for through ours.
func place(spec *corev1.PodSpec, pairs []portPair) int {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if restartable(c) && slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return slices.ContainsFunc(pairs, func(pair portPair) bool { return p.ContainerPort == pair.listen || p.ContainerPort == pair.app })
		}) {
			return i
		}
	}
	return len(spec.InitContainers)
}

func restartable(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// serving lists the containers that serve for as long as the pod lives.
func serving(spec *corev1.PodSpec) []*corev1.Container {
	var out []*corev1.Container
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; restartable(c) && c.Name != quotav1.ContainerName {
			out = append(out, c)
		}
	}
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	return out
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " " + strings.Join(names, " or ")
}

// Hash names what an injection makes of a pod template: the workload is restarted once for each value. The installation's
// image is left out on purpose: an upgrade of the operator must not restart every workload of the cluster at once. What is
// asked of one workload alone (v1alpha1.AnnotationUpgrade) is mixed in by its value.
func Hash(plan Plan, asked ...string) string {
	b, err := json.Marshal(plan)
	if err != nil {
		panic(fmt.Sprintf("injector: marshal plan: %v", err)) // strings and quantities only
	}
	sum := sha256.Sum256([]byte("v2 " + string(b) + strings.Join(asked, " ")))
	return hex.EncodeToString(sum[:6])
}
