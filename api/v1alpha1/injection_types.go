// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// InjectionMode says how traffic reaches the sidecar.
// +kubebuilder:validation:Enum=Auto;NamedPort;Redirect;None
type InjectionMode string

const (
	// Auto is NamedPort where every Service targets the workload by port names, else Redirect where the namespace allows it.
	Auto InjectionMode = "Auto"
	// NamedPort gives the sidecar the app's named ports: Services that target a port by name reach the sidecar first.
	NamedPort InjectionMode = "NamedPort"
	// Redirect lets an init container with NET_ADMIN redirect the app's ports inside the pod: numbers work, too.
	Redirect InjectionMode = "Redirect"
	// None intercepts nothing: the app, or a proxy of its own, asks the sidecar on loopback.
	None InjectionMode = "None"
)

// RolloutMode says who restarts a workload whose pods lack the sidecar.
// +kubebuilder:validation:Enum=Automatic;Manual
type RolloutMode string

const (
	// Automatic restarts a workload by an annotation of its pod template, once per change of the injection.
	Automatic RolloutMode = "Automatic"
	// Manual leaves the restart to people: the condition Injected says which.
	Manual RolloutMode = "Manual"
)

// Injection says how the sidecar gets into pods.
//
// +kubebuilder:validation:MinProperties=1
type Injection struct {
	// mode says how traffic reaches the sidecar. NamedPort needs no privileges: the container port keeps its name and gets
	// the sidecar's number, so Services that target the port by name reach the sidecar. Redirect works with numbers, too: an
	// init container with NET_ADMIN redirects the app's ports inside the pod. None intercepts nothing. Auto takes NamedPort
	// where the Services of the workload target names, else Redirect where the namespace's Pod Security level allows it. Absent:
	// what the installation says, which is Auto unless somebody has changed it.
	// +optional
	Mode InjectionMode `json:"mode,omitempty"`

	// rollout says who restarts a workload whose pods lack the sidecar: Automatic (the operator) or Manual (you). Absent: what the
	// installation says, which is Automatic unless somebody has changed it.
	// +optional
	Rollout RolloutMode `json:"rollout,omitempty"`

	// ports are the container ports to limit, by name or by number ("8080"). Absent: the ports that Services target; where
	// there is no such Service, every TCP port that the pod declares.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[0-9]+$') ? int(p) >= 1 && int(p) <= 65535 : p.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'))",message="ports are names of container ports, such as http (lower-case letters, digits and '-'), or numbers from 1 to 65535 in quotes, such as \"8080\""
	Ports []string `json:"ports,omitempty"`

	// preStopSleepSeconds is how long an app container that has no preStop hook is kept alive when its pod ends, so that
	// clients move on before it stops: 5 when absent; 0 leaves the containers alone, for apps that see to it themselves.
	// It counts from the last client that came, since endpoints may be slow to forget the pod; half of the pod's grace period, or
	// this time where it is longer, is the most that it takes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=300
	PreStopSleepSeconds *int32 `json:"preStopSleepSeconds,omitempty"`

	// sidecar overrides what the installation says about the sidecar's container.
	// +optional
	Sidecar Sidecar `json:"sidecar,omitzero"`
}

// Sidecar overrides what the installation says about the sidecar's container.
//
// +kubebuilder:validation:MinProperties=1
type Sidecar struct {
	// image of the sidecar. Absent: the installation's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// resources of the sidecar, in place of the installation's. In a pod of class Guaranteed its requests become its limits.
	// +optional
	Resources SidecarResources `json:"resources,omitzero"`

	// imagePullSecrets are added to the pod's own. They must exist in the policy's namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// SidecarResources are what the sidecar's container asks for and may use.
//
// +kubebuilder:validation:MinProperties=1
type SidecarResources struct {
	// requests of the container, such as {cpu: 100m, memory: 64Mi}.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits of the container. Without a limit of CPU nothing delays requests.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
