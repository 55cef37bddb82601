// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// prepareNamespace puts the CA where the namespace's pods find it, then opens the webhook for the namespace: both before a
// pod is created for the policy's sake.
func (r *Reconciler) prepareNamespace(ctx context.Context, s *scope) error {
	if s.outside != "" {
		return nil
	}
	if err := r.ensureCA(ctx, s.policy.Namespace); err != nil {
		return err
	}
	return r.openWebhook(ctx)
}

// excluded reports whether pods of a namespace are never injected, whatever its labels.
func (r *Reconciler) excluded(namespace string) bool {
	return namespace == metav1.NamespaceSystem || namespace == r.Settings.Namespace
}

// outside says why pods of a namespace never get the sidecar, and what to do; empty when they may.
func (r *Reconciler) outside(namespace *corev1.Namespace) string {
	if r.excluded(namespace.Name) {
		return "move the workload to a namespace of its own"
	}
	if r.Settings.Namespaces == nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(r.Settings.Namespaces)
	if err != nil || !selector.Matches(labels.Set(namespace.Labels)) {
		return fmt.Sprintf("the installation may touch only namespaces with the labels %s: kubectl label namespace %s, or widen the chart's namespaceSelector",
			metav1.FormatLabelSelector(r.Settings.Namespaces), namespace.Name)
	}
	return ""
}

// errNoCA asks for another try: the rotator makes the certificate within seconds of the first start.
var errNoCA = errors.New("the operator's certificate is not there yet")

func (r *Reconciler) ensureCA(ctx context.Context, namespace string) error {
	ca := r.CA()
	if ca == nil {
		return errNoCA
	}
	key := types.NamespacedName{Namespace: namespace, Name: r.Settings.CAConfigMap}
	var have corev1.ConfigMap
	err := r.Client.Get(ctx, key, &have)
	if err == nil && have.Data["ca.crt"] == string(ca) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("CA in %s: %w", key, err)
	}
	want := corev1ac.ConfigMap(key.Name, key.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": "headgate"}).
		WithData(map[string]string{"ca.crt": string(ca)})
	if err := r.Client.Apply(ctx, want, FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("CA in %s: %w", key, err)
	}
	return nil
}

// openWebhook keeps what the webhook selects equal to the pods of the namespaces that have policies, so that creating a pod
// anywhere else does not depend on Headgate. The chart leaves rules and namespaceSelector to it alone: while there are no
// policies the webhook has no rules and is never called, and an upgrade of the chart has nothing to disagree about.
func (r *Reconciler) openWebhook(ctx context.Context) error {
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &policies); err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	var names []string
	for i := range policies.Items {
		if n := policies.Items[i].Namespace; policies.Items[i].DeletionTimestamp.IsZero() && !r.excluded(n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var have admissionregistrationv1.MutatingWebhookConfiguration
	err := r.Client.Get(ctx, types.NamespacedName{Name: r.Settings.Webhook}, &have)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("webhook configuration %s is missing: install the chart again", r.Settings.Webhook)
	} else if err != nil {
		return fmt.Errorf("webhook configuration %s: %w", r.Settings.Webhook, err)
	}
	selector := r.selector(names)
	if selects(&have, r.Settings.WebhookName, selector) {
		return nil
	}
	hook := admissionregistrationac.MutatingWebhook().WithName(r.Settings.WebhookName)
	if selector != nil {
		ac := metav1ac.LabelSelector().WithMatchLabels(selector.MatchLabels)
		for _, e := range selector.MatchExpressions {
			ac.WithMatchExpressions(metav1ac.LabelSelectorRequirement().WithKey(e.Key).WithOperator(e.Operator).WithValues(e.Values...))
		}
		hook.WithNamespaceSelector(ac)
		hook.WithRules(admissionregistrationac.RuleWithOperations().WithOperations(admissionregistrationv1.Create).
			WithAPIGroups("").WithAPIVersions("v1").WithResources("pods").WithScope(admissionregistrationv1.NamespacedScope))
	}
	want := admissionregistrationac.MutatingWebhookConfiguration(r.Settings.Webhook).WithWebhooks(hook)
	if err := r.Client.Apply(ctx, want, FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("webhook configuration %s: %w", r.Settings.Webhook, err)
	}
	return nil
}

// selector selects namespaces by name that the installation may touch; nil = none.
func (r *Reconciler) selector(names []string) *metav1.LabelSelector {
	if len(names) == 0 {
		return nil
	}
	out := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}
	if all := r.Settings.Namespaces; all != nil {
		out.MatchLabels, out.MatchExpressions = all.MatchLabels, append(out.MatchExpressions, all.MatchExpressions...)
	}
	return out
}

// selects reports whether the webhook selects the pods of just these namespaces.
func selects(c *admissionregistrationv1.MutatingWebhookConfiguration, name string, want *metav1.LabelSelector) bool {
	for i := range c.Webhooks {
		hook := &c.Webhooks[i]
		if hook.Name != name {
			continue
		}
		if want == nil {
			return len(hook.Rules) == 0
		}
		return len(hook.Rules) == 1 && equality.Semantic.DeepEqual(hook.NamespaceSelector, want)
	}
	return false
}
