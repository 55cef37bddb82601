// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/controllers/target"
)

// PodState is what the API server says of a pod, reduced to what matters here.
type PodState struct {
	UID       types.UID
	Namespace string
	Name      string
	Node      string
	Owners    []target.Workload
	Labels    map[string]string
	// Injected says that the pod carries the sidecar; AppReady that every other container is ready; Ready that the pod is.
	Injected, AppReady, Ready bool
	// Terminating says that the pod has been asked to end; Ended that its phase is final.
	Terminating, Ended bool
	// Scheduled says that a node was chosen: before that nothing can run.
	Scheduled bool
	// Deleted says that the object is gone. That proves nothing about its processes.
	Deleted bool
	// BootID is that of the node while the pod was last known to run there; "" where nobody knows.
	BootID string
	// SidecarEnded says that the kubelet reports the sidecar as terminated now.
	SidecarEnded bool
	// Terminations are the ends of sidecar processes that the kubelet has reported.
	Terminations []Termination
}

// Termination is the end of one process of the sidecar, by the clock of its node, in whole seconds as the kubelet writes it.
type Termination struct{ Started, Finished time.Time }

// NewPodState reads a pod. The owners are found by the caller.
func NewPodState(p *corev1.Pod, owners []target.Workload) PodState {
	s := PodState{
		UID: p.UID, Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Owners: owners, Labels: p.Labels,
		Scheduled:   p.Spec.NodeName != "",
		Terminating: p.DeletionTimestamp != nil,
		Ended:       p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	s.Injected = slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == quotav1.ContainerName })
	s.Ready = slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	s.AppReady = len(p.Status.ContainerStatuses) == len(p.Spec.Containers) &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return !c.Ready })
	for _, c := range p.Status.InitContainerStatuses {
		if c.Name != quotav1.ContainerName {
			continue
		}
		s.SidecarEnded = c.State.Terminated != nil
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil {
				s.Terminations = append(s.Terminations, Termination{Started: t.StartedAt.Time, Finished: t.FinishedAt.Time})
			}
		}
	}
	return s
}

// NodeState is what matters of a node.
type NodeState struct {
	Name   string
	BootID string
	// Ready says that its kubelet speaks.
	Ready bool
	// OutOfService says that a person has declared the node dead (node.kubernetes.io/out-of-service).
	OutOfService bool
	Deleted      bool
}

// NewNodeState reads a node.
func NewNodeState(n *corev1.Node) NodeState {
	return NodeState{
		Name: n.Name, BootID: n.Status.NodeInfo.BootID,
		Ready: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}),
		OutOfService: slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }),
	}
}
