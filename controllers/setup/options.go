// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup wires the operator together.
package setup

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/certs"
	"github.com/headgate/headgate/controllers/injector"
)

// Options are the operator's flags.
type Options struct {
	Namespace string // POD_NAMESPACE
	PodIP     string // POD_IP: where the other replicas send sidecars while this one leads
	PodName   string // POD_NAME

	Service      string
	Secret       string
	Webhook      string
	CAConfigMap  string
	Lease        string
	SidecarImage string
	PullPolicy   string
	PullSecrets  string
	RecordPath   string

	Rollouts        bool
	RestartOwner    string
	RolloutPatience time.Duration

	// Certificates is Own or External.
	Certificates string
	Terms        certs.Terms

	NamespaceSelector string

	InjectionMode, InjectionRollout string // for policies that do not say

	SidecarCPU, SidecarMemoryRequest, SidecarMemoryLimit string

	WebhookPort, QuotaPort     int
	MetricsAddress, HealthAddr string
	SecureMetrics              bool
	Pprof                      bool
	Debug                      bool
}

// Parse reads flags and environment.
func Parse(args []string) (Options, error) {
	o := Options{Namespace: os.Getenv("POD_NAMESPACE"), PodIP: os.Getenv("POD_IP"), PodName: os.Getenv("POD_NAME")}
	fs := flag.NewFlagSet("headgate-operator", flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&o.Service, "service", "headgate-operator", "Service of the operator, in its own namespace: sidecars and the API server reach it there.")
	fs.StringVar(&o.Secret, "certificate-secret", "headgate-operator-cert", "Secret, in the operator's namespace, that holds the certificate. It must exist; the operator fills it.")
	fs.StringVar(&o.Webhook, "webhook-configuration", "headgate-operator", "MutatingWebhookConfiguration and ValidatingWebhookConfiguration whose authorities the operator keeps, of the first also rules and namespaceSelector.")
	fs.StringVar(&o.Certificates, "certificates", Own, "Who makes the certificate: own (the operator) or external (such as cert-manager, which then also fills the webhook configurations).")
	fs.DurationVar(&o.Terms.Validity, "certificate-validity", 90*24*time.Hour, "How long a certificate is valid; it is renewed when two thirds have passed.")
	fs.DurationVar(&o.Terms.CAValidity, "ca-validity", 5*365*24*time.Hour, "How long the authority is valid that signs certificates.")
	fs.DurationVar(&o.Terms.Overlap, "ca-overlap", 10*time.Minute, "How long a new authority is trusted before it signs: as long as the slowest kubelet takes to bring a ConfigMap to its pods.")
	fs.StringVar(&o.NamespaceSelector, "namespace-selector", "", "Labels of the namespaces whose pods may get the sidecar, such as team=shop,env in (prod,stage); empty: all but kube-system and the operator's own.")
	fs.BoolVar(&o.Rollouts, "rollouts", true, "Restart workloads, and evict pods, that lack the sidecar. Without it the condition Injected says which restart is left to you.")
	fs.StringVar(&o.CAConfigMap, "ca-configmap", "headgate-ca", "ConfigMap that the operator keeps in each namespace that has a policy.")
	fs.StringVar(&o.Lease, "lease", "headgate-operator", "Lease, in the operator's namespace, by which the replicas elect their leader.")
	fs.StringVar(&o.SidecarImage, "sidecar-image", "", "Image of the sidecar (required).")
	fs.StringVar(&o.PullPolicy, "sidecar-image-pull-policy", "", "Pull policy of the sidecar's image: Always, IfNotPresent or Never.")
	fs.StringVar(&o.PullSecrets, "sidecar-image-pull-secrets", "", "Names of Secrets, separated by commas, that injected pods get for pulling the sidecar's image. They must exist in the pods' namespaces.")
	fs.StringVar(&o.RestartOwner, "restart-field-manager", "headgate-restart", "Field manager of the annotations by which workloads are restarted.")
	fs.DurationVar(&o.RolloutPatience, "rollout-patience", time.Minute, "How long a restart may make no pods, since the cluster refuses them, before it is taken back.")
	fs.StringVar(&o.InjectionMode, "injection-mode", string(v1alpha1.Auto), "How traffic reaches the sidecar where a policy does not say: Auto, NamedPort, Redirect or None.")
	fs.StringVar(&o.InjectionRollout, "injection-rollout", string(v1alpha1.Automatic), "Who restarts workloads whose pods lack the sidecar where a policy does not say: Automatic (the operator) or Manual (people).")
	fs.StringVar(&o.SidecarCPU, "sidecar-cpu-request", "20m", "CPU request of the sidecar. There is no CPU limit: throttling would delay requests.")
	fs.StringVar(&o.SidecarMemoryRequest, "sidecar-memory-request", "32Mi", "Memory request of the sidecar.")
	fs.StringVar(&o.SidecarMemoryLimit, "sidecar-memory-limit", "128Mi", "Memory limit of the sidecar.")
	fs.StringVar(&o.RecordPath, "decision-records", "", "For tests: folder of each node in which sidecars record every decision. Not allowed by the restricted Pod Security Standard.")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "Port of the admission webhook.")
	fs.IntVar(&o.QuotaPort, "quota-port", 9444, "Port of the quota service that sidecars connect to.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "Address of the metrics endpoint; 0 turns it off.")
	fs.BoolVar(&o.SecureMetrics, "metrics-secure", true, "Serve metrics over TLS to authenticated and authorised clients only.")
	fs.BoolVar(&o.Pprof, "pprof", false, "Serve Go's profiles at /debug/pprof/ of the metrics endpoint, to clients that may get that path.")
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz.")
	fs.BoolVar(&o.Debug, "debug", false, "Log more.")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	return o, o.validate()
}

// Who makes the certificate.
const (
	Own      = "own"
	External = "external"
)

const usage = `headgate-operator reconciles RateLimitPolicies, injects the sidecar and shares limits among pods.

It runs in a cluster, as a Deployment of two or more replicas; the Helm chart charts/headgate installs it.
POD_NAMESPACE, POD_NAME and POD_IP must be set (downward API).

`

func (o *Options) validate() error {
	var errs []error
	for name, value := range map[string]string{"POD_NAMESPACE": o.Namespace, "POD_NAME": o.PodName, "POD_IP": o.PodIP} {
		if value == "" {
			errs = append(errs, fmt.Errorf("environment %s is empty: set it by the downward API, as the chart does", name))
		}
	}
	if o.SidecarImage == "" {
		errs = append(errs, errors.New("--sidecar-image is empty: name the image to inject, such as ghcr.io/headgate/sidecar:v0.1.0"))
	}
	switch corev1.PullPolicy(o.PullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		errs = append(errs, fmt.Errorf("--sidecar-image-pull-policy %q: write Always, IfNotPresent or Never", o.PullPolicy))
	}
	switch v1alpha1.InjectionMode(o.InjectionMode) {
	case v1alpha1.Auto, v1alpha1.NamedPort, v1alpha1.Redirect, v1alpha1.None:
	default:
		errs = append(errs, fmt.Errorf("--injection-mode %q: write Auto, NamedPort, Redirect or None", o.InjectionMode))
	}
	switch v1alpha1.RolloutMode(o.InjectionRollout) {
	case v1alpha1.Automatic, v1alpha1.Manual:
	default:
		errs = append(errs, fmt.Errorf("--injection-rollout %q: write Automatic or Manual", o.InjectionRollout))
	}
	if o.Pprof && !o.SecureMetrics {
		errs = append(errs, errors.New("--pprof without --metrics-secure: profiles show what is in memory, to anybody; leave one of them out"))
	}
	if o.RolloutPatience < time.Second {
		errs = append(errs, fmt.Errorf("--rollout-patience %s is below a second: write for example 1m", o.RolloutPatience))
	}
	if o.Certificates != Own && o.Certificates != External {
		errs = append(errs, fmt.Errorf("--certificates %q: write %s or %s", o.Certificates, Own, External))
	}
	if err := o.Terms.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--certificate-validity, --ca-validity, --ca-overlap: %w", err))
	}
	if _, err := o.namespaces(); err != nil {
		errs = append(errs, fmt.Errorf("--namespace-selector %q: %w; write for example team=shop,env in (prod,stage)", o.NamespaceSelector, err))
	}
	for name, q := range map[string]string{"cpu-request": o.SidecarCPU, "memory-request": o.SidecarMemoryRequest, "memory-limit": o.SidecarMemoryLimit} {
		if _, err := resource.ParseQuantity(q); err != nil {
			errs = append(errs, fmt.Errorf("--sidecar-%s %q: %w; write for example 20m or 32Mi", name, q, err))
		}
	}
	return errors.Join(errs...)
}

// namespaces selects those whose pods may get the sidecar.
func (o *Options) namespaces() (*metav1.LabelSelector, error) {
	return metav1.ParseToLabelSelector(o.NamespaceSelector)
}

// sidecar is the injector's configuration. The quantities have been validated.
func (o *Options) sidecar() injector.Config {
	return injector.Config{
		Image:          o.SidecarImage,
		PullPolicy:     corev1.PullPolicy(o.PullPolicy),
		PullSecrets:    strings.FieldsFunc(o.PullSecrets, func(c rune) bool { return c == ',' || c == ' ' }),
		Operator:       fmt.Sprintf("%s.%s.svc:%d", o.Service, o.Namespace, o.QuotaPort),
		CAConfigMap:    o.CAConfigMap,
		RecordHostPath: o.RecordPath,
		Default:        injector.Default{Mode: v1alpha1.InjectionMode(o.InjectionMode), Rollout: v1alpha1.RolloutMode(o.InjectionRollout)},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse(o.SidecarCPU),
				corev1.ResourceMemory: resource.MustParse(o.SidecarMemoryRequest),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(o.SidecarMemoryLimit)},
		},
	}
}
