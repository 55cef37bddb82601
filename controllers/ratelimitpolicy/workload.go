// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
)

// running is a workload, read live: a stale answer would restart it twice.
type running struct {
	object   client.Object
	template *corev1.PodTemplateSpec
	// left says why its restart is left to a person, and what that person does; empty when the operator may restart it.
	left string
	// failing is what the workload's controller says of pods that it cannot make; empty when it can.
	failing string
}

// read reads a workload past the cache.
func (r *Reconciler) read(ctx context.Context, w target.Workload) (*running, error) {
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	var out running
	switch w.Kind {
	case "Deployment":
		var d appsv1.Deployment
		if err := r.Live.Get(ctx, key, &d); err != nil {
			return nil, err
		}
		out.object, out.template = &d, &d.Spec.Template
		if d.Spec.Paused {
			out.left = fmt.Sprintf("it is paused: kubectl rollout resume deployment/%s -n %s, then kubectl rollout restart deployment/%[1]s -n %[2]s", w.Name, w.Namespace)
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				out.failing = c.Message
			}
		}
	case "StatefulSet":
		var d appsv1.StatefulSet
		if err := r.Live.Get(ctx, key, &d); err != nil {
			return nil, err
		}
		out.object, out.template = &d, &d.Spec.Template
		if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			out.left = "its update strategy is OnDelete: " + deleteCommand(w)
		}
	case "DaemonSet":
		var d appsv1.DaemonSet
		if err := r.Live.Get(ctx, key, &d); err != nil {
			return nil, err
		}
		out.object, out.template = &d, &d.Spec.Template
		if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			out.left = "its update strategy is OnDelete: " + deleteCommand(w)
		}
	default:
		var d appsv1.ReplicaSet
		if err := r.Live.Get(ctx, key, &d); err != nil {
			return nil, err
		}
		out.object, out.template = &d, &d.Spec.Template
		out.left = "a ReplicaSet does not replace its pods: " + deleteCommand(w)
	}
	if ref := metav1.GetControllerOf(out.object); ref != nil && out.left == "" {
		out.left = fmt.Sprintf("it belongs to %s %s, which would undo it: restart it there, or %s", ref.Kind, ref.Name, restartCommand(w))
	}
	return &out, nil
}

// failure is what a workload's controller has said of pods that it could not make since a time.
func (r *Reconciler) failure(ctx context.Context, d *running, since time.Time) (string, error) {
	if d.failing != "" {
		return d.failing, nil
	}
	// StatefulSets and DaemonSets have no condition for it, only events.
	var list corev1.EventList
	if err := r.Live.List(ctx, &list, client.InNamespace(d.object.GetNamespace()), client.MatchingFieldsSelector{Selector: fields.Set{
		"involvedObject.uid": string(d.object.GetUID()), "reason": "FailedCreate",
	}.AsSelector()}); err != nil {
		return "", fmt.Errorf("events of %s: %w", d.object.GetName(), err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		at := e.LastTimestamp.Time
		if at.Before(e.EventTime.Time) {
			at = e.EventTime.Time
		}
		if !at.Before(since.Truncate(time.Second)) {
			return e.Message, nil
		}
	}
	return "", nil
}

// restartedAt is when the operator has last changed a workload; zero when it has not.
func restartedAt(o client.Object, manager client.FieldOwner) time.Time {
	for _, m := range o.GetManagedFields() {
		if m.Manager == string(manager) && m.Time != nil {
			return m.Time.Time
		}
	}
	return time.Time{}
}

// change is what the operator says of a workload, all of it: what it said before and says no more goes. An annotation of the
// pod template restarts the workload when it comes and when it goes.
type change struct {
	injection string // of the pod template
	refused   string // of the workload
}

func (c change) of(w target.Workload) interface {
	IsApplyConfiguration()
} {
	template := corev1ac.PodTemplateSpec()
	if c.injection != "" {
		template.WithAnnotations(map[string]string{v1alpha1.AnnotationInjection: c.injection})
	}
	annotations := map[string]string{}
	if c.refused != "" {
		annotations[v1alpha1.AnnotationRefused] = c.refused
	}
	switch w.Kind {
	case "Deployment":
		return appsv1ac.Deployment(w.Name, w.Namespace).WithAnnotations(annotations).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(template))
	case "StatefulSet":
		return appsv1ac.StatefulSet(w.Name, w.Namespace).WithAnnotations(annotations).WithSpec(appsv1ac.StatefulSetSpec().WithTemplate(template))
	default:
		return appsv1ac.DaemonSet(w.Name, w.Namespace).WithAnnotations(annotations).WithSpec(appsv1ac.DaemonSetSpec().WithTemplate(template))
	}
}

// restartCommand is what a person types.
func restartCommand(w target.Workload) string {
	if w.Kind == "ReplicaSet" {
		return deleteCommand(w)
	}
	return fmt.Sprintf("kubectl rollout restart %s -n %s", resource(w), w.Namespace)
}

func deleteCommand(w target.Workload) string {
	return fmt.Sprintf("kubectl delete pod POD -n %s for each pod of %s in turn", w.Namespace, resource(w))
}

// resource names a workload as kubectl does.
func resource(w target.Workload) string {
	return map[string]string{"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset", "ReplicaSet": "replicaset"}[w.Kind] + "/" + w.Name
}
