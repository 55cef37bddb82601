// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// outside says why pods of the namespace never get the sidecar; empty when they may.
	outside string

	targets []target.Workload
	missing []target.Workload
	// conflicts are what can hold only once and is taken from an older policy that shares a target with this one.
	conflicts []conflict

	workloads []*surveyed // the targets that have pods

	view quota.View
	// What a person should know or do, in whole phrases that name the mend.
	manual   []string // restarts that are left to people
	refused  []string // pods that cannot have the sidecar
	bypass   []string // ways around the sidecar
	outdated []string // sidecars of another image
	first    bool     // the policy is marked, in this reconciliation, as having had its first fill
	again    time.Duration
}

// wake asks for another reconciliation after a time, or sooner.
func (s *scope) wake(after time.Duration) {
	if s.again == 0 || after < s.again {
		s.again = after
	}
}

// compile turns the policy into what pods enforce. An invalid policy keeps what was published before.
func (r *Reconciler) compile(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.policy.Namespace}}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("namespace %s: %w", s.policy.Namespace, err)
	}
	s.outside = r.outside(namespace)
	s.compiled, s.invalid = compile.Policy(s.policy, compile.NamespaceMode(namespace.Labels))
	return nil
}

// resolve looks for the targets and the other policies on them.
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
	s.conflicts = conflictsOf(s.policy, policies, r.Sidecar.Default)
	return nil
}

// conflict is a field of the policy that an older one says otherwise.
type conflict struct{ field, elder string }

// conflictsOf looks for what a policy says otherwise than those on the same workloads, oldest first, that are older. The
// oldest decides the injection; the oldest that says how clients are answered decides that.
func conflictsOf(p *v1alpha1.RateLimitPolicy, policies []*v1alpha1.RateLimitPolicy, unsaid injector.Default) []conflict {
	var out []conflict
	if len(policies) > 0 && policies[0].UID != p.UID && !sameInjection(unsaid.Said(policies[0]), unsaid.Said(p)) {
		out = append(out, conflict{"injection", policies[0].Name})
	}
	for _, other := range policies {
		if other.UID == p.UID {
			break
		}
		if !says(other) {
			continue
		}
		if says(p) && !equality.Semantic.DeepEqual(other.Spec.Response, p.Spec.Response) {
			out = append(out, conflict{"response", other.Name})
		}
		break
	}
	return out
}

// says reports whether a policy says how clients are answered.
func says(p *v1alpha1.RateLimitPolicy) bool {
	return !equality.Semantic.DeepEqual(p.Spec.Response, v1alpha1.Response{})
}

// sameInjection ignores who restarts: that is no contradiction.
func sameInjection(a, b v1alpha1.Injection) bool {
	a.Rollout, b.Rollout = "", ""
	return equality.Semantic.DeepEqual(a, b)
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
