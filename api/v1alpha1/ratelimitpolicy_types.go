// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicy declares limits over all pods of one or more workloads: however many pods there are, together they
// admit what the policy says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ratelimitpolicies,singular=ratelimitpolicy,shortName=hrlp,categories=headgate,scope=Namespaced
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.status.summary.targets`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.status.summary.share`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters: it becomes a label of metrics; write a shorter name, such as checkout"
type RateLimitPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to limit, where, and how much.
	// +required
	Spec RateLimitPolicySpec `json:"spec,omitzero"`

	// status is what the pods enforce: only what they have acknowledged is reported.
	// +optional
	Status RateLimitPolicyStatus `json:"status,omitzero"`
}

// RateLimitPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type RateLimitPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RateLimitPolicy `json:"items"`
}

// RateLimitPolicySpec is what a person declares.
type RateLimitPolicySpec struct {
	// targetRefs name the workloads, in the policy's own namespace, whose pods share the limits: one limit over the pods of
	// all of them, so stable and canary, or blue and green, can be given one limit together.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name))",message="each target may be named once: remove the repeated entry"
	TargetRefs []TargetRef `json:"targetRefs,omitempty"`

	// limits all apply: a request must be granted by every limit that matches it, in one step; a denial by one gives back
	// what the others took.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Limits []Limit `json:"limits,omitempty"`

	// mode Shadow makes all limits of the policy count what they would have denied, and deny nothing: the way to try a policy, and
	// to switch it off at once. The label ratelimit.headgate.dev/mode: Shadow on the namespace does the same for its policies.
	// +optional
	// +default="Enforce"
	Mode Mode `json:"mode,omitempty"`

	// maxHold is how long a request that finds no token in its pod may be held while one may be on its way from another, as a
	// duration from 0s (it is denied at once) to 1s, such as 50ms. Absent: 500ms. Where the leader has said lately that there is none, a
	// request is held for 10ms at most. It is of use to limits whose tokens are lent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}(s|ms))+$') && duration(self) <= duration('1s')",message="maxHold must be a duration from 0s to 1s, such as 50ms"
	MaxHold string `json:"maxHold,omitempty"`

	// exempt names requests that no limit of the policy counts.
	// +optional
	Exempt Exempt `json:"exempt,omitzero"`

	// response is what clients are answered.
	// +optional
	Response Response `json:"response,omitzero"`

	// injection says how the sidecar gets into the pods and how traffic reaches it.
	// +optional
	Injection Injection `json:"injection,omitzero"`
}

// TargetRef names a workload in the policy's namespace.
//
// +kubebuilder:validation:XValidation:rule="self.group == 'apps'",message="group must be apps: the supported workloads are apps/Deployment, apps/StatefulSet, apps/DaemonSet and apps/ReplicaSet"
// +kubebuilder:validation:XValidation:rule="self.kind in ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet']",message="kind must be Deployment, StatefulSet, DaemonSet or ReplicaSet: a limit is enforced in the pods of a workload, so name the workload behind a Service, Ingress or HTTPRoute"
type TargetRef struct {
	// group is the API group of the workload: apps.
	// +optional
	// +default="apps"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kind is the kind of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the name of the workload. It need not exist yet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of a workload: lower-case letters, digits, '-' and '.', such as checkout"
	Name string `json:"name,omitempty"`
}
