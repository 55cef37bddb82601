// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet holds what the plugin has found of policies and their pods: what the API server says of them, and what
// their sidecars answer.
package fleet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
)

// Policy is a policy and the pods that it covers.
type Policy struct {
	v1alpha1.RateLimitPolicy
	Pods []*Pod
}

// Key is namespace/name.
func (p *Policy) Key() string { return p.Namespace + "/" + p.Name }

// Pod is a pod that lives. Several policies may cover it.
type Pod struct {
	corev1.Pod
	Owners []target.Workload
	Answer Answer
}

// Key is namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Injected reports whether the pod carries the sidecar.
func (p *Pod) Injected() bool { return injector.Injected(&p.Spec) }

// Ready reports whether a pod gets requests.
func Ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Sidecar returns what the kubelet says of the sidecar's container; nil when it says nothing yet.
func (p *Pod) Sidecar() *corev1.ContainerStatus {
	for i := range p.Status.InitContainerStatuses {
		if c := &p.Status.InitContainerStatuses[i]; c.Name == quotav1.ContainerName {
			return c
		}
	}
	return nil
}

// Workload is the outermost owner of the pod; none for a bare pod.
func (p *Pod) Workload() (target.Workload, bool) {
	if len(p.Owners) == 0 {
		return target.Workload{}, false
	}
	return p.Owners[len(p.Owners)-1], true
}

// Enforced returns what the pod's sidecar says of a policy; nil when it says nothing.
func (p *Pod) Enforced(policy *v1alpha1.RateLimitPolicy) *admission.PolicyState {
	if p.Answer.State == nil {
		return nil
	}
	for i := range p.Answer.State.Policies {
		if s := &p.Answer.State.Policies[i]; s.Namespace == policy.Namespace && s.Name == policy.Name {
			return s
		}
	}
	return nil
}

// Outcome is what came of asking a sidecar.
type Outcome string

// Outcomes.
const (
	NotAsked    Outcome = ""
	Answered    Outcome = "Answered"
	Silent      Outcome = "Silent"      // it took the question and does not answer
	Closed      Outcome = "Closed"      // nothing listens
	Unreachable Outcome = "Unreachable" // the way to the pod is cut: the API server does not reach the kubelet
	Forbidden   Outcome = "Forbidden"   // this user may not ask
)

// Answer is what a sidecar says of itself.
type Answer struct {
	Outcome Outcome
	State   *admin.State // of Answered
	Error   string       // of the others
	At      time.Time    // when it was asked, by the clock of this machine: the middle of the exchange
}
