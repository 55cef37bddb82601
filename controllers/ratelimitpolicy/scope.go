// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/target"
)

// scope holds what the phases of one reconciliation read and decide.
type scope struct {
	policy *v1alpha1.RateLimitPolicy
	now    time.Time

	compiled *quotav1.Policy // nil when the policy is invalid
	invalid  error

	targets []target.Workload
	missing []target.Workload
	// elder is the oldest policy that shares a target with this one and asks for another injection.
	elder *v1alpha1.RateLimitPolicy
	plan  injector.Plan
	// bypass names Services that reach the app around the sidecar.
	bypass []string

	view   quota.View
	manual []string // what a person must restart, and how
	first  bool     // the policy is marked, in this reconciliation, as having had its first fill
	again  time.Duration
}

// compile turns the policy into what pods enforce. An invalid policy keeps what was published before.
func (r *Reconciler) compile(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: s.policy.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("namespace %s: %w", s.policy.Namespace, err)
	}
	s.compiled, s.invalid = compile.Policy(s.policy, compile.NamespaceMode(namespace.Labels))
	return nil
}

// resolve looks for the targets, the other policies on them and the Services before them.
func (r *Reconciler) resolve(ctx context.Context, s *scope) error {
	s.targets = target.Of(s.policy)
	for _, w := range s.targets {
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, w.Object())
		if apierrors.IsNotFound(err) {
			s.missing = append(s.missing, w)
		} else if err != nil {
			return fmt.Errorf("target %s: %w", w, err)
		}
	}
	var siblings v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &siblings, client.InNamespace(s.policy.Namespace)); err != nil {
		return fmt.Errorf("policies of namespace %s: %w", s.policy.Namespace, err)
	}
	policies := target.Policies(siblings.Items, s.targets)
	if len(policies) > 0 && policies[0].UID != s.policy.UID && !sameInjection(policies[0], s.policy) {
		s.elder = policies[0]
	}
	services, err := r.services(ctx, s)
	if err != nil {
		return err
	}
	s.plan = injector.PlanOf(policies, services)
	if s.plan.Mode == v1alpha1.NamedPort {
		s.bypass = bypassing(services)
	}
	return nil
}

func sameInjection(a, b *v1alpha1.RateLimitPolicy) bool {
	return a.Spec.Injection.Mode == b.Spec.Injection.Mode && strings.Join(a.Spec.Injection.Ports, ",") == strings.Join(b.Spec.Injection.Ports, ",")
}

// services lists the Services that select any pod of the targets.
func (r *Reconciler) services(ctx context.Context, s *scope) ([]corev1.Service, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(s.policy.Namespace)); err != nil {
		return nil, fmt.Errorf("pods of namespace %s: %w", s.policy.Namespace, err)
	}
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, client.InNamespace(s.policy.Namespace)); err != nil {
		return nil, fmt.Errorf("services of namespace %s: %w", s.policy.Namespace, err)
	}
	var labels []map[string]string
	for i := range pods.Items {
		owners, err := target.Owners(ctx, &pods.Items[i], r.Client)
		if err != nil {
			return nil, err
		}
		if target.Covers(s.policy, owners) {
			labels = append(labels, pods.Items[i].Labels)
		}
	}
	return injector.Selecting(list.Items, labels...), nil
}

// bypassing names the Services that reach pods by number: NamedPort does not stand in their way. A headless Service passes
// a client the pod's address, and the client dials the port it knows.
func bypassing(services []corev1.Service) []string {
	var out []string
	for i := range services {
		for _, p := range services[i].Spec.Ports {
			tcp := p.Protocol == "" || p.Protocol == corev1.ProtocolTCP
			if tcp && p.TargetPort.StrVal == "" && services[i].Spec.Type != corev1.ServiceTypeExternalName {
				out = append(out, fmt.Sprintf("%s (targetPort %s)", services[i].Name, p.TargetPort.String()))
				break
			}
		}
	}
	return out
}

// release frees the share of pods that a person has declared gone.
func (r *Reconciler) release(_ context.Context, s *scope) error {
	for name := range strings.SplitSeq(s.policy.Annotations[v1alpha1.AnnotationRelease], ",") {
		if name = strings.TrimSpace(name); name != "" {
			r.Mint.Release(types.NamespacedName{Namespace: s.policy.Namespace, Name: name})
		}
	}
	return nil
}

// observe reads what the pods enforce.
func (r *Reconciler) observe(_ context.Context, s *scope) error {
	s.view = r.Mint.View(s.policy.UID, s.policy.Generation)
	return nil
}

// publish hands the policy to the mint.
func (r *Reconciler) publish(_ context.Context, s *scope) error {
	if s.compiled != nil {
		r.Mint.Publish(s.compiled, s.targets, s.first)
	}
	return nil
}
