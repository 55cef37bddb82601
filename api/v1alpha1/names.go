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
	// AnnotationMode on a pod is the mode that its sidecar was injected with: NamedPort, Redirect or None.
	AnnotationMode = GroupName + "/mode"
	// AnnotationPorts on a pod says which port of the sidecar stands before which port of the app: 14101=8080,14102=9090.
	AnnotationPorts = GroupName + "/ports"
	// AnnotationOriginal on a pod is what the injection replaced and the pod does not say elsewhere, as JSON: the way back.
	AnnotationOriginal = GroupName + "/original"
	// AnnotationRollout on a pod is spec.injection.rollout of its policy: it says whether the operator may take the sidecar
	// out again when the policy has gone.
	AnnotationRollout = GroupName + "/rollout"
	// AnnotationUpgrade on a workload asks for a restart of those of its pods whose sidecar is not the installation's: once for
	// each value, or, with the value "always", after every upgrade of the installation.
	AnnotationUpgrade = GroupName + "/upgrade"
	// AnnotationRefused on a workload holds the hash of an injection that made no pods (a quota or a policy of the cluster
	// refused them): its pods are created without the sidecar until the annotation goes or the injection changes.
	AnnotationRefused = GroupName + "/refused"
	// AnnotationRelease on a policy names pods (namespace-less, comma-separated) whose reserved share a person has declared
	// free: they are known to be gone though nothing proved it. The operator acts on it once and takes it away.
	AnnotationRelease = GroupName + "/release"
	// AnnotationEpoch on the operator's Lease is the epoch of the leader.
	AnnotationEpoch = GroupName + "/epoch"
	// AnnotationLeader on the operator's Lease is the address of the leader's quota service.
	AnnotationLeader = GroupName + "/leader"
	// AnnotationHandover on the operator's Lease is the last word of a leader that stopped in order, until the next leader
	// takes it in.
	AnnotationHandover = GroupName + "/handover"
)
