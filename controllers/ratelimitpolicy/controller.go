// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/target"
)

// behind is how long the cache is given to show what this controller has just written.
const behind = 100 * time.Millisecond

// FieldOwner owns what this controller applies.
const FieldOwner = client.FieldOwner("headgate-policy-controller")

// Mint is what the reconciler needs of the quota's home; *quota.Home is one.
type Mint interface {
	Publish(compiled *quotav1.Policy, targets []target.Workload, first bool)
	Withdraw(key types.NamespacedName)
	View(uid types.UID, generation int64) quota.View
	Release(pod types.NamespacedName) (released bool)
}

// Reconciler reconciles RateLimitPolicies; it runs in the leader.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache, where a stale answer would restart a workload twice.
	Live     client.Reader
	Mint     Mint
	Recorder events.EventRecorder
	// CA returns the operator's certificate authority, PEM; nil before there is one.
	CA func() []byte
	// Bell rings for policies whose pods have changed what they enforce.
	Bell *Bell
	// Sidecar is what the webhook injects.
	Sidecar injector.Config

	Settings Settings

	memory memory
}

// Settings name the objects around the policies.
type Settings struct {
	Namespace   string // of the operator; never injected
	Webhook     string // MutatingWebhookConfiguration that follows the policies
	WebhookName string // name of the one webhook in it
	CAConfigMap string // in every namespace that has a policy

	// Namespaces selects those whose pods may get the sidecar; nil = all but kube-system and the operator's own.
	Namespaces *metav1.LabelSelector
	// NoRollouts leaves every restart to people: the operator has no right to patch workloads and evict pods.
	NoRollouts bool
	// RestartOwner is the field manager of the annotations that restart workloads; empty = headgate-restart.
	RestartOwner string
	// Patience is how long a restart may make no pods before it is taken back; 0 = a minute.
	Patience time.Duration
	// Parting is how long a workload keeps the sidecar after its last policy has gone; 0 = 10 s: one that is deleted and
	// applied again must not restart it twice, and a webhook whose cache is behind must not put the sidecar in again.
	Parting time.Duration
	// EvictEvery is the pace at which pods are replaced that came up bare; 0 = 10 s.
	EvictEvery time.Duration
}

func (s *Settings) restartOwner() client.FieldOwner {
	return client.FieldOwner(cmp.Or(s.RestartOwner, "headgate-restart"))
}

func (s *Settings) patience() time.Duration   { return cmp.Or(s.Patience, time.Minute) }
func (s *Settings) parting() time.Duration    { return cmp.Or(s.Parting, 10*time.Second) }
func (s *Settings) evictEvery() time.Duration { return cmp.Or(s.EvictEvery, 10*time.Second) }

// +kubebuilder:rbac:groups=ratelimit.headgate.dev,resources=ratelimitpolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ratelimit.headgate.dev,resources=ratelimitpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods;services;nodes;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=headgate-ca,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=headgate-operator,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=headgate-operator,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Mint == nil || r.Recorder == nil || r.CA == nil || r.Live == nil || r.Bell == nil {
		return errors.New("policy controller: Mint, Recorder, CA, Live and Bell must be set")
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("ratelimitpolicy").
		For(&v1alpha1.RateLimitPolicy{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace)).
		Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace)).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, handler.EnqueueRequestsFromMapFunc(r.anyPolicy)).
		WatchesRawSource(r.Bell.source())
	for _, kind := range target.Kinds {
		// A workload matters when it appears or goes, and when a person annotates it; what changes in it shows in its pods.
		b = b.WatchesMetadata(target.Metadata(kind), handler.EnqueueRequestsFromMapFunc(r.targeting(kind)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})))
	}
	if err := mgr.Add(manager.RunnableFunc(r.begin)); err != nil {
		return fmt.Errorf("policy controller: %w", err)
	}
	return b.Complete(r)
}

// inNamespace maps an object to the policies of its namespace.
func (r *Reconciler) inNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requests(ctx, o.GetNamespace(), func(*v1alpha1.RateLimitPolicy) bool { return true })
}

// ofNamespace maps a namespace to its policies.
func (r *Reconciler) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requests(ctx, o.GetName(), func(*v1alpha1.RateLimitPolicy) bool { return true })
}

// anyPolicy maps the webhook configuration, when somebody has changed it, to one policy: every reconciliation mends it.
func (r *Reconciler) anyPolicy(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != r.Settings.Webhook {
		return nil
	}
	all := r.requests(ctx, metav1.NamespaceAll, func(p *v1alpha1.RateLimitPolicy) bool { return !r.excluded(p.Namespace) })
	return all[:min(1, len(all))]
}

// targeting maps a workload to the policies that target it.
func (r *Reconciler) targeting(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		w := target.Workload{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		return r.requests(ctx, o.GetNamespace(), func(p *v1alpha1.RateLimitPolicy) bool {
			return target.Covers(p, []target.Workload{w})
		})
	}
}

func (r *Reconciler) requests(ctx context.Context, namespace string, keep func(*v1alpha1.RateLimitPolicy) bool) []reconcile.Request {
	var list v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing policies", "namespace", namespace)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if keep(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile brings one policy about.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy := &v1alpha1.RateLimitPolicy{}
	err := r.Client.Get(ctx, req.NamespacedName, policy)
	if apierrors.IsNotFound(err) || err == nil && !policy.DeletionTimestamp.IsZero() {
		r.Mint.Withdraw(req.NamespacedName)
		if err := r.openWebhook(ctx); err != nil {
			return reconcile.Result{}, err
		}
		again, err := r.remove(ctx, req.Namespace, time.Now())
		return reconcile.Result{RequeueAfter: again}, err
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("policy %s: %w", req.NamespacedName, err)
	}
	s := &scope{policy: policy, now: time.Now()}
	// Each phase reads and fills the scope. The status, with the mark of the first fill, is durable before the policy is
	// published: a limit is never filled twice.
	for _, phase := range []func(context.Context, *scope) error{
		r.compile, r.resolve, r.prepareNamespace, r.observe, r.release, r.survey, r.rollOut, r.writeStatus, r.publish, r.sweep,
	} {
		err := phase(ctx, s)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: behind}, nil // the cache is behind: look again when it has caught up
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: s.again}, nil
}
