// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	v1alpha1ac "github.com/headgate/headgate/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/quota"
)

const (
	// maxMessage is the most that a condition's message may hold.
	maxMessage = 1024
	// maxReserved is how many pods the status may name as reserved.
	maxReserved = 256
)

// writeStatus applies the status, if it says anything new, and notes in the scope whether the policy has just been marked.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if !s.view.Leading {
		return nil // this replica does not know yet; the home calls again when it does
	}
	want := status(s)
	if equality.Semantic.DeepEqual(want, s.policy.Status) {
		s.first = false
		return nil
	}
	ac := v1alpha1ac.RateLimitPolicy(s.policy.Name, s.policy.Namespace).WithStatus(applyStatus(want))
	if s.first {
		// A mark that another leader has set must not be overlooked.
		ac.WithUID(s.policy.UID).WithResourceVersion(s.policy.ResourceVersion)
	}
	err := r.Client.Status().Apply(ctx, ac, FieldOwner, client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		s.compiled = nil // it has just been deleted: nothing is to be published
		return nil
	}
	if err != nil {
		return fmt.Errorf("status of policy %s/%s: %w", s.policy.Namespace, s.policy.Name, err)
	}
	r.announce(s, want)
	return nil
}

// status is the policy's status as it shall be. It is a pure function of the scope, but for the mark that it notes there.
func status(s *scope) v1alpha1.RateLimitPolicyStatus {
	out := v1alpha1.RateLimitPolicyStatus{Summary: v1alpha1.Summary{
		Targets: cut(names(s.targets), 512),
		Pods:    fmt.Sprintf("%d/%d", s.view.Acked, s.view.Pods),
	}}
	out.Conditions = append(out.Conditions, s.policy.Status.Conditions...)
	out.Reserved = reserved(s.view.Reserved)
	for _, v := range verdicts(s) {
		meta.SetStatusCondition(&out.Conditions, metav1.Condition{
			Type: string(v.kind), Status: v.status, Reason: string(v.reason), Message: cut(v.message, maxMessage),
			ObservedGeneration: s.policy.Generation, LastTransitionTime: metav1.NewTime(s.now.Truncate(1e9)),
		})
	}
	if s.compiled == nil {
		out.Limits, out.Summary.Share = s.policy.Status.Limits, s.policy.Status.Summary.Share
		return out
	}
	marked := map[string]*metav1.Time{}
	for _, l := range s.policy.Status.Limits {
		if l.Account != "" && !l.FirstFill.IsZero() {
			marked[l.Account] = l.FirstFill
		}
	}
	s.first = len(marked) == 0
	for _, l := range compile.Bases(s.compiled) {
		out.Limits = append(out.Limits, limitStatus(s, l, marked))
	}
	out.Summary.Share = out.Limits[0].Share
	return out
}

// reserved is what a new leader could not know of: of pods whose objects are there it makes up its own mind.
func reserved(list []quota.Reservation) (out []v1alpha1.ReservedPod) {
	for _, r := range list {
		if r.Deleted && len(out) < maxReserved {
			out = append(out, v1alpha1.ReservedPod{UID: string(r.UID), Name: r.Pod, Node: r.Node, BootID: r.BootID})
		}
	}
	return out
}

func limitStatus(s *scope, l *quotav1.Limit, marked map[string]*metav1.Time) v1alpha1.LimitStatus {
	v := s.view.Limits[l.Id]
	out := v1alpha1.LimitStatus{
		Name: l.Name, Contract: cut(compile.Contract(l), 256), Pods: new(int32(v.N)), Account: l.Id, FirstFill: marked[l.Id],
	}
	switch {
	case l.Scope == quotav1.Scope_PER_POD && v.N > 0:
		out.Share = compile.Rate(l.Rate, 1, 1)
	case v.Units > 0:
		out.Share = compile.Rate(l.Rate, v.Units, quotav1.Whole)
	}
	if out.FirstFill.IsZero() {
		out.FirstFill = new(metav1.NewTime(s.now.Truncate(1e9)))
	}
	return out
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n-3] + "..."
	}
	return s
}

func applyStatus(s v1alpha1.RateLimitPolicyStatus) *v1alpha1ac.RateLimitPolicyStatusApplyConfiguration {
	out := v1alpha1ac.RateLimitPolicyStatus()
	summary := v1alpha1ac.Summary()
	if s.Summary.Targets != "" {
		summary.WithTargets(s.Summary.Targets)
	}
	if s.Summary.Pods != "" {
		summary.WithPods(s.Summary.Pods)
	}
	if s.Summary.Share != "" {
		summary.WithShare(s.Summary.Share)
	}
	out.WithSummary(summary)
	for _, c := range s.Conditions {
		out.WithConditions(metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).
			WithMessage(c.Message).WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	for _, p := range s.Reserved {
		ac := v1alpha1ac.ReservedPod().WithUID(p.UID).WithName(p.Name).WithNode(p.Node)
		if p.BootID != "" {
			ac.WithBootID(p.BootID)
		}
		out.WithReserved(ac)
	}
	for _, l := range s.Limits {
		ac := v1alpha1ac.LimitStatus().WithName(l.Name)
		if l.Contract != "" {
			ac.WithContract(l.Contract)
		}
		if l.Pods != nil {
			ac.WithPods(*l.Pods)
		}
		if l.Share != "" {
			ac.WithShare(l.Share)
		}
		if l.Account != "" {
			ac.WithAccount(l.Account)
		}
		if !l.FirstFill.IsZero() {
			ac.WithFirstFill(*l.FirstFill)
		}
		out.WithLimits(ac)
	}
	return out
}

// announce makes an event of every condition that has changed and that a person would want to hear of.
func (r *Reconciler) announce(s *scope, want v1alpha1.RateLimitPolicyStatus) {
	for _, c := range want.Conditions {
		before := meta.FindStatusCondition(s.policy.Status.Conditions, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason {
			continue
		}
		event, kind := eventOf(c)
		if event != "" {
			r.Recorder.Eventf(s.policy, nil, kind, string(event), string(v1alpha1.ActionReconcile), "%s", c.Message)
		}
	}
}

// eventOf says which event a condition's change is, if any.
func eventOf(c metav1.Condition) (v1alpha1.EventReason, string) {
	switch v1alpha1.Reason(c.Reason) {
	case v1alpha1.ReasonAccepted:
		return v1alpha1.EventAccepted, corev1.EventTypeNormal
	case v1alpha1.ReasonInvalid:
		return v1alpha1.EventInvalid, corev1.EventTypeWarning
	case v1alpha1.ReasonTargetNotFound:
		return v1alpha1.EventTargetNotFound, corev1.EventTypeWarning
	case v1alpha1.ReasonConflicted:
		return v1alpha1.EventConflicted, corev1.EventTypeWarning
	case v1alpha1.ReasonProgrammed:
		return v1alpha1.EventProgrammed, corev1.EventTypeNormal
	case v1alpha1.ReasonReserved:
		return v1alpha1.EventReserved, corev1.EventTypeWarning
	}
	return "", ""
}
