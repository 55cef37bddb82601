// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations that the operator reads or writes.
const (
	// LabelInject on a pod, with the value "false", keeps the sidecar out of it.
	LabelInject = GroupName + "/inject"
	// LabelMode on a namespace, with the value Shadow, makes all its policies count and deny nothing.
	LabelMode = GroupName + "/mode"
	// LabelInjected marks a pod that carries the sidecar.
	LabelInjected = GroupName + "/injected"
	// AnnotationInjection on a pod template holds the hash of the injection it was restarted for.
	AnnotationInjection = GroupName + "/injection"
	// AnnotationRelease on a policy names pods (namespace-less, comma-separated) whose reserved share a person has declared
	// free: they are known to be gone though nothing proved it.
	AnnotationRelease = GroupName + "/release"
	// AnnotationEpoch on the operator's Lease is the epoch of the leader.
	AnnotationEpoch = GroupName + "/epoch"
	// AnnotationLeader on the operator's Lease is the address of the leader's quota service.
	AnnotationLeader = GroupName + "/leader"
	// AnnotationHandover on the operator's Lease is the last word of a leader that stopped in order, until the next leader
	// takes it in.
	AnnotationHandover = GroupName + "/handover"
)
