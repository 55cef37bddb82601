// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review decides whether a policy may be applied: what the API server's own rules cannot say, such as whether an
// expression compiles, is refused here with the path, the fault and an example, before it is stored.
//
// It answers for the moment of kubectl apply alone. While it is away policies are stored unreviewed; the reconciler then says
// the same in the condition Accepted, and what was enforced before stays.
package review

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// Webhook reviews policies as they are created and changed.
type Webhook struct{}

// +kubebuilder:webhook:path=/validate-ratelimit-headgate-dev-v1alpha1-ratelimitpolicy,mutating=false,failurePolicy=ignore,sideEffects=None,timeoutSeconds=3,groups=ratelimit.headgate.dev,resources=ratelimitpolicies,verbs=create;update,versions=v1alpha1,name=review.ratelimit.headgate.dev,admissionReviewVersions=v1

// SetupWithManager registers the webhook.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.RateLimitPolicy{}).WithValidator(w).Complete()
}

// ValidateCreate implements admission.Validator.
func (*Webhook) ValidateCreate(_ context.Context, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	return review(p)
}

// ValidateUpdate implements admission.Validator. Only what a change of the spec brings is reviewed: a policy that an older
// release let through can still be labelled, and deleted.
func (*Webhook) ValidateUpdate(_ context.Context, before, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	if !p.DeletionTimestamp.IsZero() || before.Generation != 0 && before.Generation == p.Generation {
		return nil, nil
	}
	return review(p)
}

// ValidateDelete implements admission.Validator.
func (*Webhook) ValidateDelete(context.Context, *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	return nil, nil
}

func review(p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	if _, err := compile.Policy(p, ""); err != nil {
		return nil, err
	}
	return warnings(p), nil
}

// warnings are what kubectl prints of a policy that is accepted and may not do what its author expects.
func warnings(p *v1alpha1.RateLimitPolicy) admission.Warnings {
	var out admission.Warnings
	for i := range p.Spec.Limits {
		l := &p.Spec.Limits[i]
		for j := range l.Key {
			if l.Key[j].ClaimOfVerifiedJWT != (v1alpha1.JWTClaim{}) {
				out = append(out, fmt.Sprintf("spec.limits[%d].key[%d].claimOfVerifiedJWT: the token's signature is not checked here; let a gateway in front verify it", i, j))
			}
		}
		if len(l.Key) > 0 && l.OnMissingKey == "" && skippable(l) {
			out = append(out, fmt.Sprintf("spec.limits[%d]: a request without the key is not limited by it; write onMissingKey: Deny or Shared if clients can leave it out", i))
		}
	}
	return out
}

// skippable reports whether a client can leave a part of the key out.
func skippable(l *v1alpha1.Limit) bool {
	for i := range l.Key {
		k := &l.Key[i]
		if k.ClientIP == nil && k.Request == "" && k.PathVariable == "" {
			return true
		}
	}
	return false
}
