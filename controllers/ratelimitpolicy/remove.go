// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// takenOut is the annotation of a pod template that had none and whose pods lose the sidecar.
const takenOut = "none"

// remove takes the sidecar out of the workloads of a namespace that no policy targets any more, by the choice of the policy
// that was the last: Automatic restarts them, Manual says so in an event. It returns when to look again.
func (r *Reconciler) remove(ctx context.Context, namespace string, now time.Time) (time.Duration, error) {
	if r.excluded(namespace) {
		return 0, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelInjected: "true"}); err != nil {
		return 0, fmt.Errorf("pods of namespace %s: %w", namespace, err)
	}
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("policies of namespace %s: %w", namespace, err)
	}
	again := time.Duration(0)
	var seen []target.Workload
	for i := range pods.Items {
		pod := &pods.Items[i]
		noted := v1alpha1.RolloutMode(pod.Annotations[v1alpha1.AnnotationRollout])
		if pod.DeletionTimestamp != nil || noted == "" || !injector.Injected(&pod.Spec) {
			continue // one that has no note was not injected by the webhook
		}
		owners, err := target.Owners(ctx, pod, r.Client)
		if err != nil {
			return 0, err
		}
		if len(owners) == 0 || len(target.Policies(policies.Items, owners)) > 0 || slices.Contains(seen, owners[len(owners)-1]) {
			continue
		}
		w := owners[len(owners)-1]
		seen = append(seen, w)
		if wait := r.Settings.parting() - now.Sub(r.memory.orphaned(w, now)); wait > 0 {
			again = wait
			continue
		}
		if choice := r.memory.choice(w); choice != "" {
			noted = choice
		}
		if err := r.takeOut(ctx, w, pod, noted); err != nil {
			return 0, err
		}
	}
	return again, nil
}

// sweep looks for workloads that this policy, or another one, has ceased to target.
func (r *Reconciler) sweep(ctx context.Context, s *scope) error {
	again, err := r.remove(ctx, s.policy.Namespace, s.now)
	if again > 0 {
		s.wake(again)
	}
	return err
}

// takeOut restarts a workload without the sidecar, or says in an event how a person does.
func (r *Reconciler) takeOut(ctx context.Context, w target.Workload, pod *corev1.Pod, rollout v1alpha1.RolloutMode) error {
	d, err := r.read(ctx, w)
	if apierrors.IsNotFound(err) || err == nil && d.object.GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("workload %s: %w", w, err)
	}
	left := d.left
	if rollout == v1alpha1.Manual && left == "" {
		left = "its policy said rollout Manual: " + restartCommand(w)
	}
	if r.Settings.NoRollouts && left == "" {
		left = mayNot + ": " + restartCommand(w)
	}
	if left != "" {
		if r.memory.news("removal "+string(d.object.GetUID()), left) {
			r.Recorder.Eventf(d.object, nil, corev1.EventTypeNormal, string(v1alpha1.EventRolloutManual), string(v1alpha1.ActionRestart),
				"No policy targets %s any more; taking the sidecar out of its pods is left to you, since %s", w, left)
		}
		return nil
	}
	have := d.template.Annotations[v1alpha1.AnnotationInjection]
	if have != pod.Annotations[v1alpha1.AnnotationInjection] {
		return nil // it is under way
	}
	next := change{}
	if have == "" {
		next.injection = takenOut
	}
	if err := r.Client.Apply(ctx, next.of(w), r.Settings.restartOwner(), client.ForceOwnership); err != nil {
		return fmt.Errorf("take the sidecar out of %s: %w", w, err)
	}
	r.memory.forget(w)
	r.Recorder.Eventf(d.object, nil, corev1.EventTypeNormal, string(v1alpha1.EventRolloutStarted), string(v1alpha1.ActionRestart),
		"Restarting %s without the sidecar: no policy targets it any more", w)
	return nil
}

// begin looks, when a leader begins, at every namespace with injected pods: a policy may have gone while nobody led.
func (r *Reconciler) begin(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.MatchingLabels{v1alpha1.LabelInjected: "true"}); err != nil {
		return fmt.Errorf("injected pods: %w", err)
	}
	for i := range pods.Items {
		r.Bell.Ring(types.NamespacedName{Namespace: pods.Items[i].Namespace})
	}
	return nil
}
