// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

const (
	// settle is how long a namespace must have been open to the webhook before a workload is restarted for it: the API
	// server reads the selector from a cache of its own, and a pod created in between would come up bare again.
	settle = time.Second
	// evictEvery is the pace at which pods are replaced that came up bare although their template was annotated.
	evictEvery = 10 * time.Second
)

// FieldOwnerRestart owns the annotation of pod templates.
const FieldOwnerRestart = client.FieldOwner("headgate-restart")

// restart brings the sidecar into workloads whose pods lack it, or says what a person must do.
func (r *Reconciler) restart(ctx context.Context, s *scope) error {
	if s.compiled == nil || !s.view.Leading || len(s.view.Bare) == 0 || r.excluded(s.policy.Namespace) {
		return nil
	}
	bare, err := r.bareByWorkload(ctx, s)
	if err != nil {
		return err
	}
	for _, w := range s.targets {
		pods := bare[w]
		if len(pods) == 0 {
			continue
		}
		if s.policy.Spec.Injection.Rollout == v1alpha1.Manual {
			s.manual = append(s.manual, restartCommand(w))
			continue
		}
		if err := r.restartWorkload(ctx, s, w, pods); err != nil {
			return err
		}
	}
	return nil
}

// bareByWorkload finds the pods without the sidecar that can have it.
func (r *Reconciler) bareByWorkload(ctx context.Context, s *scope) (map[target.Workload][]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(s.policy.Namespace)); err != nil {
		return nil, fmt.Errorf("pods of namespace %s: %w", s.policy.Namespace, err)
	}
	out := map[target.Workload][]corev1.Pod{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.Contains(s.view.Bare, pod.Name) || pod.DeletionTimestamp != nil {
			continue
		}
		if _, err := injector.Inject(pod, injector.Config{}, s.plan); err != nil {
			s.manual = append(s.manual, fmt.Sprintf("pod %s: %v", pod.Name, err))
			continue
		}
		owners, err := target.Owners(ctx, pod, r.Client)
		if err != nil {
			return nil, err
		}
		for _, w := range s.targets {
			if slices.Contains(owners, w) {
				out[w] = append(out[w], *pod)
				break
			}
		}
	}
	return out, nil
}

func (r *Reconciler) restartWorkload(ctx context.Context, s *scope, w target.Workload, bare []corev1.Pod) error {
	template, why, err := r.template(ctx, w)
	switch {
	case apierrors.IsNotFound(err):
		return nil // its pods end with it
	case err != nil:
		return fmt.Errorf("workload %s: %w", w, err)
	case why != "":
		s.manual = append(s.manual, restartCommand(w)+" ("+why+")")
		return nil
	}
	hash := injector.Hash(s.plan)
	if template.Annotations[v1alpha1.AnnotationInjection] == hash {
		return r.replaceBare(ctx, s, hash, bare)
	}
	if since := s.now.Sub(s.policy.CreationTimestamp.Time); since < settle {
		s.again = settle - since
		return nil
	}
	if err := r.Client.Apply(ctx, annotate(w, hash), FieldOwnerRestart, client.ForceOwnership); err != nil {
		return fmt.Errorf("restart %s: %w", w, err)
	}
	r.Recorder.Eventf(s.policy, nil, corev1.EventTypeNormal, string(v1alpha1.EventRolloutStarted), string(v1alpha1.ActionRestart),
		"Restarting %s: %d pods lack the sidecar", w, len(bare))
	return nil
}

// template reads a workload live: its pod template, and why it must not be restarted by us, if so.
func (r *Reconciler) template(ctx context.Context, w target.Workload) (*corev1.PodTemplateSpec, string, error) {
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	switch w.Kind {
	case "Deployment":
		var d appsv1.Deployment
		err := r.Live.Get(ctx, key, &d)
		if d.Spec.Paused {
			return &d.Spec.Template, "it is paused", err
		}
		return &d.Spec.Template, owned(&d), err
	case "StatefulSet":
		var d appsv1.StatefulSet
		err := r.Live.Get(ctx, key, &d)
		if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			return &d.Spec.Template, "its update strategy is OnDelete", err
		}
		return &d.Spec.Template, owned(&d), err
	case "DaemonSet":
		var d appsv1.DaemonSet
		err := r.Live.Get(ctx, key, &d)
		if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return &d.Spec.Template, "its update strategy is OnDelete", err
		}
		return &d.Spec.Template, owned(&d), err
	}
	return &corev1.PodTemplateSpec{}, "a bare ReplicaSet does not replace its pods", nil
}

func owned(o client.Object) string {
	if ref := metav1.GetControllerOf(o); ref != nil {
		return "it belongs to " + ref.Kind + " " + ref.Name
	}
	return ""
}

// annotate is the change of the pod template that restarts a workload.
func annotate(w target.Workload, hash string) interface {
	IsApplyConfiguration()
} {
	template := corev1ac.PodTemplateSpec().WithAnnotations(map[string]string{v1alpha1.AnnotationInjection: hash})
	switch w.Kind {
	case "Deployment":
		return appsv1ac.Deployment(w.Name, w.Namespace).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(template))
	case "StatefulSet":
		return appsv1ac.StatefulSet(w.Name, w.Namespace).WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(template))
	default:
		return appsv1ac.DaemonSet(w.Name, w.Namespace).WithSpec(appsv1ac.DaemonSetSpec().WithTemplate(template))
	}
}

// replaceBare evicts, one at a time and as a PodDisruptionBudget allows, pods that came up bare from an annotated template:
// the webhook was not there when they were created.
func (r *Reconciler) replaceBare(ctx context.Context, s *scope, hash string, bare []corev1.Pod) error {
	for i := range bare {
		pod := &bare[i]
		if pod.Annotations[v1alpha1.AnnotationInjection] != hash {
			continue // of the older template: the rollout replaces it
		}
		if age := s.now.Sub(pod.CreationTimestamp.Time); age < evictEvery {
			s.again = evictEvery - age
			continue
		}
		s.again = evictEvery
		err := r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
		if apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err) {
			return nil // the budget says: later
		}
		if err != nil {
			return fmt.Errorf("evict pod %s: %w", pod.Name, err)
		}
		return nil
	}
	return nil
}

// restartCommand is what a person types.
func restartCommand(w target.Workload) string {
	if w.Kind == "ReplicaSet" {
		return fmt.Sprintf("delete the pods of %s in namespace %s", w, w.Namespace)
	}
	return fmt.Sprintf("kubectl rollout restart %s/%s -n %s", map[string]string{
		"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset"}[w.Kind], w.Name, w.Namespace)
}
