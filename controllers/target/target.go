// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target decides which workloads a pod belongs to and which policies cover it.
package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Workload names an owner of pods.
type Workload struct {
	Kind      string
	Namespace string
	Name      string
}

// Kinds are the workloads that a policy may target, all of group apps.
var Kinds = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}

func (w Workload) String() string { return w.Kind + "/" + w.Name }

// Object returns an empty metadata object of the workload's kind, to fetch or to watch.
func (w Workload) Object() *metav1.PartialObjectMetadata {
	o := Metadata(w.Kind)
	o.Namespace, o.Name = w.Namespace, w.Name
	return o
}

// Metadata returns an empty metadata object of an apps kind.
func Metadata(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})
	return o
}

// Of lists the workloads that a policy targets.
func Of(p *v1alpha1.RateLimitPolicy) []Workload {
	out := make([]Workload, 0, len(p.Spec.TargetRefs))
	for _, t := range p.Spec.TargetRefs {
		out = append(out, Workload{Kind: t.Kind, Namespace: p.Namespace, Name: t.Name})
	}
	return out
}

// Owners lists the workloads that a pod belongs to, nearest first: its ReplicaSet, and the Deployment of that. The readers
// are asked in turn for a ReplicaSet, so that a cache can stand before a live read. A pod that no workload owns has none;
// a ReplicaSet that is gone ends the list.
func Owners(ctx context.Context, pod *corev1.Pod, readers ...client.Reader) ([]Workload, error) {
	ref := metav1.GetControllerOf(pod)
	if ref == nil || !isApps(ref) {
		return nil, nil
	}
	owners := []Workload{{Kind: ref.Kind, Namespace: pod.Namespace, Name: ref.Name}}
	if ref.Kind != "ReplicaSet" {
		return owners, nil
	}
	for _, r := range readers {
		rs := owners[0].Object()
		err := r.Get(ctx, client.ObjectKeyFromObject(rs), rs)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("owner of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if up := metav1.GetControllerOf(rs); up != nil && isApps(up) {
			owners = append(owners, Workload{Kind: up.Kind, Namespace: pod.Namespace, Name: up.Name})
		}
		break
	}
	return owners, nil
}

func isApps(ref *metav1.OwnerReference) bool {
	return strings.HasPrefix(ref.APIVersion, "apps/") && slices.Contains(Kinds, ref.Kind)
}

// Covers reports whether a policy targets any of a pod's owners.
func Covers(p *v1alpha1.RateLimitPolicy, owners []Workload) bool {
	return slices.ContainsFunc(Of(p), func(w Workload) bool { return slices.Contains(owners, w) })
}

// Policies returns those that cover a pod, oldest first: where two say what can hold only once, the first wins.
func Policies(all []v1alpha1.RateLimitPolicy, owners []Workload) []*v1alpha1.RateLimitPolicy {
	var out []*v1alpha1.RateLimitPolicy
	for i := range all {
		if all[i].DeletionTimestamp.IsZero() && Covers(&all[i], owners) {
			out = append(out, &all[i])
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.RateLimitPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

// OptedOut reports whether a pod asks to be left alone.
func OptedOut(labels map[string]string) bool { return labels[v1alpha1.LabelInject] == "false" }
