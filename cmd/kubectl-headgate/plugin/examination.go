// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/release"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/diagnosis"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// Names of the chart's defaults, where the cluster does not say them.
const (
	defaultNamespace = "headgate-system"
	defaultOperator  = "headgate-operator"
	caConfigMap      = "headgate-ca"
)

// longPatience is how long doctor waits for an answer before it takes a sidecar for frozen.
const longPatience = 5 * time.Second

// examination collects the facts for a diagnosis. What it may not look at it notes, and goes on.
type examination struct {
	session   *session
	namespace string // of the operator, as flags say

	*diagnosis.Facts
}

// facts looks at everything.
func (x *examination) facts(ctx context.Context, all bool) (*diagnosis.Facts, error) {
	s := x.session
	x.Facts = &diagnosis.Facts{Version: release.Version(), Found: map[target.Workload]bool{}, Names: map[string][]string{}, Authorities: map[string][]byte{}}
	begin := time.Now()
	there, err := s.clock(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	x.Here = begin.Add(time.Since(begin) / 2).Sub(there)
	policies, err := s.policies(ctx, all)
	if err != nil {
		return nil, err
	}
	x.configuration(ctx)
	x.operator(ctx)
	first := x.lease(ctx)
	read := time.Now()
	if x.Policies, err = s.fleet(ctx, policies); err != nil {
		return nil, err
	}
	x.surroundings(ctx)
	x.targets(ctx)
	x.try(ctx)
	x.served(ctx)
	asking := s.interviewer(longPatience)
	defer asking.Close()
	asking.ask(ctx, distinct(x.Policies))
	x.forbidden()
	x.again(ctx, first, read)
	x.Now = time.Now().Add(-x.Here)
	return x.Facts, ctx.Err()
}

// blind notes what could not be looked at; it reports whether that is so.
func (x *examination) blind(what string, err error) bool {
	if err == nil {
		return false
	}
	x.Blind = append(x.Blind, diagnosis.Blind{What: what, Why: err.Error()})
	return true
}

// configuration finds the webhook, which says where the operator is.
func (x *examination) configuration(ctx context.Context) {
	o, w := &x.Operator, &x.Webhook
	o.Namespace, o.Name = cmp.Or(x.namespace, defaultNamespace), defaultOperator
	var list admissionv1.MutatingWebhookConfigurationList
	if x.blind("webhook configurations", x.session.List(ctx, &list)) {
		return
	}
	for i := range list.Items {
		for j := range list.Items[i].Webhooks {
			hook := &list.Items[i].Webhooks[j]
			service := hook.ClientConfig.Service
			if hook.Name != diagnosis.WebhookName || service == nil || x.namespace != "" && service.Namespace != x.namespace {
				continue
			}
			o.Namespace, o.Name = service.Namespace, service.Name
			w.Configured, w.Called, w.CABundle = true, len(hook.Rules) > 0, hook.ClientConfig.CABundle
			w.Fails = hook.FailurePolicy != nil && *hook.FailurePolicy == admissionv1.Fail
			w.Covers = x.covers(ctx, hook)
			return
		}
	}
}

// covers lists the namespaces that a webhook is called for.
func (x *examination) covers(ctx context.Context, hook *admissionv1.MutatingWebhook) map[string]bool {
	out := map[string]bool{}
	selector, err := metav1.LabelSelectorAsSelector(hook.NamespaceSelector)
	if hook.NamespaceSelector == nil {
		selector, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{})
	}
	var list corev1.NamespaceList
	if err != nil || x.blind("namespaces", x.session.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector})) {
		return out
	}
	for i := range list.Items {
		out[list.Items[i].Name] = true
	}
	return out
}

// operator looks at the Deployment, its pods, and the Service before them.
func (x *examination) operator(ctx context.Context) {
	s, o, w := x.session, &x.Operator, &x.Webhook
	key, in := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, client.InNamespace(o.Namespace)
	d := &appsv1.Deployment{}
	switch err := s.Get(ctx, key, d); {
	case err == nil:
		o.Deployment = d
	case !apierrors.IsNotFound(err):
		x.blind("operator", err)
	}
	if o.Deployment != nil {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		var pods corev1.PodList
		if !x.blind("operator's pods", cmp.Or(err, s.List(ctx, &pods, in, client.MatchingLabelsSelector{Selector: selector}))) {
			o.Pods = pods.Items
		}
		x.SidecarImage = flagOf(d, "sidecar-image")
		x.Default = injector.Default{Mode: v1alpha1.InjectionMode(flagOf(d, "injection-mode")), Rollout: v1alpha1.RolloutMode(flagOf(d, "injection-rollout"))}
		x.NoRollouts = flagOf(d, "rollouts") == "false"
	}
	service := &corev1.Service{}
	err := s.Get(ctx, key, service)
	if w.Service = err == nil; err != nil && !apierrors.IsNotFound(err) {
		w.Service = true
		x.blind("service of the operator", err)
	}
	var slices discoveryv1.EndpointSliceList
	if x.blind("endpoints of the operator", s.List(ctx, &slices, in, client.MatchingLabels{discoveryv1.LabelServiceName: o.Name})) {
		return
	}
	for i := range slices.Items {
		for _, e := range slices.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				w.Endpoints += len(e.Addresses)
			}
		}
	}
}

// lease reads the operator's lease for the first time.
func (x *examination) lease(ctx context.Context) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	err := x.session.Get(ctx, client.ObjectKey{Namespace: x.Operator.Namespace, Name: x.Operator.Name}, lease)
	if apierrors.IsNotFound(err) || x.blind("lease of the operator", err) {
		return nil
	}
	return lease
}

// renewal is how long a leader that works may take to renew its lease: it does so every second.
const renewal = 3 * time.Second

// again reads the lease for the second time, late enough to see it renewed.
func (x *examination) again(ctx context.Context, first *coordinationv1.Lease, read time.Time) {
	if first == nil {
		return
	}
	l := &x.Lease
	for {
		now := x.lease(ctx)
		if now == nil {
			return
		}
		at := time.Now()
		l.Found, l.Epoch = true, now.Annotations[v1alpha1.AnnotationEpoch]
		if now.Spec.HolderIdentity != nil {
			l.Holder = *now.Spec.HolderIdentity
		}
		if now.Spec.RenewTime != nil {
			l.Since = now.Spec.RenewTime.Time
			// Written a second ago at most, by a clock of its own.
			l.Ahead = l.Since.Sub(at.Add(-x.Here))
		}
		if l.Renewed = !now.Spec.RenewTime.Equal(first.Spec.RenewTime); l.Renewed || time.Since(read) > renewal || ctx.Err() != nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// surroundings looks at what is around the pods.
func (x *examination) surroundings(ctx context.Context) {
	s := x.session
	spaces := []string{x.Operator.Namespace}
	for i := range x.Policies {
		if ns := x.Policies[i].Namespace; !slices.Contains(spaces, ns) {
			spaces = append(spaces, ns)
		}
	}
	metas := map[string]metav1.ObjectMeta{}
	for _, ns := range spaces {
		var networks networkingv1.NetworkPolicyList
		if !x.blind("network policies of namespace "+ns, s.List(ctx, &networks, client.InNamespace(ns))) {
			x.Networks = append(x.Networks, networks.Items...)
		}
		if ns == x.Operator.Namespace {
			continue
		}
		var services corev1.ServiceList
		if !x.blind("services of namespace "+ns, s.List(ctx, &services, client.InNamespace(ns))) {
			x.Services = append(x.Services, services.Items...)
		}
		var namespace corev1.Namespace
		if !x.blind("namespace "+ns, s.Get(ctx, client.ObjectKey{Name: ns}, &namespace)) {
			metas[ns] = namespace.ObjectMeta
		}
		var ca corev1.ConfigMap
		switch err := s.Get(ctx, client.ObjectKey{Namespace: ns, Name: caConfigMap}, &ca); {
		case err == nil:
			x.Authorities[ns] = []byte(ca.Data["ca.crt"])
		case apierrors.IsNotFound(err):
			x.Authorities[ns] = nil
		default:
			x.blind("authority in namespace "+ns, err)
		}
	}
	if len(metas) > 0 {
		x.Namespaces = metas
	}
	var nodes corev1.NodeList
	if !x.blind("nodes", s.List(ctx, &nodes)) {
		x.Nodes = nodes.Items
	}
}

// targets looks for the workloads that policies name.
func (x *examination) targets(ctx context.Context) {
	for i := range x.Policies {
		for _, w := range target.Of(&x.Policies[i].RateLimitPolicy) {
			if _, looked := x.Found[w]; looked {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(w.Kind + "List"))
			if x.blind(fmt.Sprintf("%ss of namespace %s", w.Kind, w.Namespace), x.session.List(ctx, list, client.InNamespace(w.Namespace))) {
				continue
			}
			x.Found[w] = false
			x.Names[w.Namespace+"/"+w.Kind] = nil
			for j := range list.Items {
				x.Names[w.Namespace+"/"+w.Kind] = append(x.Names[w.Namespace+"/"+w.Kind], list.Items[j].Name)
				x.Found[w] = x.Found[w] || list.Items[j].Name == w.Name
			}
		}
	}
}

// forbidden notes that sidecars could not be asked.
func (x *examination) forbidden() {
	for _, p := range distinct(x.Policies) {
		if p.Answer.Outcome == fleet.Forbidden {
			x.Blind = append(x.Blind, diagnosis.Blind{What: "sidecars of namespace " + p.Namespace, Why: p.Answer.Error})
			return
		}
	}
}
