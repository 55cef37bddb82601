// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
)

// latecomers are the bare pods that have a sibling of the same template with the sidecar: the webhook was not there when
// they were created, and nothing is wrong with the template.
func latecomers(w *surveyed, bare []*corev1.Pod) (out []*corev1.Pod) {
	for _, p := range bare {
		if slices.ContainsFunc(w.pods, func(q *corev1.Pod) bool { return injector.Injected(&q.Spec) && revision(q) == revision(p) }) {
			out = append(out, p)
		}
	}
	return out
}

// revision names the template that a pod is made from.
func revision(p *corev1.Pod) string {
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
		return hash
	}
	return p.Labels[appsv1.ControllerRevisionHashLabelKey] + " " + p.Annotations[v1alpha1.AnnotationInjection]
}

// replace evicts bare pods one at a time, as a PodDisruptionBudget allows, and only while the other pods are well.
func (r *Reconciler) replace(ctx context.Context, s *scope, w *surveyed, bare []*corev1.Pod) error {
	pace := r.Settings.evictEvery()
	for _, pod := range bare {
		if age := s.now.Sub(pod.CreationTimestamp.Time); age < pace {
			s.wake(pace - age)
			continue
		}
		s.wake(pace)
		if w.acting != s.policy.UID {
			return nil
		}
		if slices.ContainsFunc(w.pods, func(p *corev1.Pod) bool { return injector.Injected(&p.Spec) && !ready(p) }) {
			return nil // the last replacement is not there yet
		}
		err := r.evict(ctx, pod)
		if apierrors.IsTooManyRequests(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			s.manual = append(s.manual, fmt.Sprintf("a PodDisruptionBudget keeps pod %s from being replaced: it is tried again, or kubectl delete pod %[1]s -n %s", pod.Name, pod.Namespace))
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("evict pod %s: %w", pod.Name, err)
		}
		return nil
	}
	return nil
}

// evict asks for an eviction, and takes no for an answer: the client would wait as long as a budget that nobody has computed
// yet tells it to, and all policies with it.
func (r *Reconciler) evict(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
