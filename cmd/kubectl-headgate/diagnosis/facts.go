// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis names what is wrong with an installation, why it matters and what to do. Diagnose is a pure function of
// facts that somebody else has collected; a fact that could not be had is a notice, never a guess.
package diagnosis

import (
	"crypto/x509"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// Facts are what was found, by the time of the API server's clock.
type Facts struct {
	Now time.Time
	// Here is how far this machine's clock is ahead of the API server's.
	Here time.Duration
	// Version of the plugin.
	Version string
	// Blind lists what could not be looked at, and why.
	Blind []Blind

	Operator     Operator
	Webhook      Webhook
	Lease        Lease
	Served       []Served
	Authorities  map[string][]byte // CA bundle for sidecars, by namespace; nil = the ConfigMap is not there
	Trials       []Trial
	Policies     []fleet.Policy
	Found        map[target.Workload]bool // targets that exist
	Names        map[string][]string      // workloads that exist, by namespace/kind, for typos
	Services     []corev1.Service
	Namespaces   map[string]metav1.ObjectMeta
	Networks     []networkingv1.NetworkPolicy
	Nodes        []corev1.Node
	SidecarImage string // that new pods get
	// Default is what the installation says of injection where a policy does not; NoRollouts that it may restart nothing.
	Default    injector.Default
	NoRollouts bool
}

// Blind is something that could not be looked at.
type Blind struct{ What, Why string }

// Operator is the Deployment of the operator, and its pods.
type Operator struct {
	Namespace, Name string
	Deployment      *appsv1.Deployment // nil = there is none
	Pods            []corev1.Pod
}

// Webhook is what the API server knows of the webhook that injects.
type Webhook struct {
	// Configured says that there is a configuration, Called that it has rules: without them it is never called.
	Configured, Called bool
	// Covers are the namespaces whose pods it is called for.
	Covers map[string]bool
	// Fails says that pods are refused while the webhook does not answer; else they start without the sidecar.
	Fails    bool
	CABundle []byte
	// Service is there, and Endpoints of it are ready.
	Service   bool
	Endpoints int
	// Reached is what the API server said when it was asked to connect to the webhook itself; empty = it connected, or was not
	// asked.
	Reached string
}

// Lease is the operator's, read twice.
type Lease struct {
	Found  bool
	Holder string
	Epoch  string
	// Renewed says that it was renewed between the readings. Ahead is how far the leader's clock is ahead of the API server's.
	Renewed bool
	Ahead   time.Duration
	// Since is when it was last renewed.
	Since time.Time
}

// Served is a certificate that a port of the operator presents.
type Served struct {
	Pod   string
	Port  int
	Chain []*x509.Certificate
	Error string // why there is none
	// Name is what the certificate must be valid for.
	Name string
}

// Trial is a pod that was created for the look of it (a dry run): what the webhook makes of one.
type Trial struct {
	Workload target.Workload
	Injected bool
	Refused  string // what the API server said, if it refused the pod
}
