// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicyStatus is what the pods enforce.
//
// +kubebuilder:validation:MinProperties=1
type RateLimitPolicyStatus struct {
	// conditions are Accepted, Injected, Programmed and QuotaHealthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// limits has one entry per limit of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Limits []LimitStatus `json:"limits,omitempty"`

	// reserved names the pods whose objects were deleted before anybody could know that they had ended: each keeps its part of
	// the limits until that is proven. The operator reads it back: it is how a new leader knows of them.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Reserved []ReservedPod `json:"reserved,omitempty"`

	// summary is what kubectl get shows.
	// +optional
	Summary Summary `json:"summary,omitzero"`
}

// ReservedPod is a deleted pod that may still run.
type ReservedPod struct {
	// uid is that of the pod's object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid,omitempty"`

	// name is the pod's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// node is where the pod ran when it was last heard of.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// bootID is that of the node at that time: another one proves that the pod has ended.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	BootID string `json:"bootID,omitempty"`
}

// LimitStatus is what holds for one limit.
type LimitStatus struct {
	// name is the limit's name in the spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// contract is the limit in words: what is admitted at most, and what is sustained.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Contract string `json:"contract,omitempty"`

	// pods is N: how many pods share the limit now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods *int32 `json:"pods,omitempty"`

	// share is what one pod enforces now.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Share string `json:"share,omitempty"`

	// firstFill is when the limit's buckets were filled, once in the life of this limit. The operator reads it back: it is the
	// mark that keeps a limit from being filled again after a restart.
	// +optional
	FirstFill *metav1.Time `json:"firstFill,omitempty"`

	// account identifies the buckets of the limit. It changes when the limit's key changes, which makes it another limit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Account string `json:"account,omitempty"`
}

// Summary holds the columns of kubectl get.
//
// +kubebuilder:validation:MinProperties=1
type Summary struct {
	// targets names the workloads.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Targets string `json:"targets,omitempty"`

	// pods is how many pods enforce the policy, of how many there are.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Pods string `json:"pods,omitempty"`

	// share is one pod's part of the first limit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Share string `json:"share,omitempty"`
}
