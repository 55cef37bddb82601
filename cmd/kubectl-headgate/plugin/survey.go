// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/target"
)

// policies lists policies: all of the cluster, those of the session's namespace, or the one that is named.
func (s *session) policies(ctx context.Context, all bool, name ...string) ([]v1alpha1.RateLimitPolicy, error) {
	if len(name) > 0 {
		if all {
			return nil, errors.New("a policy is of one namespace: name it by -n, and leave -A out")
		}
		p, err := s.policy(ctx, name[0])
		if err != nil {
			return nil, err
		}
		return []v1alpha1.RateLimitPolicy{*p}, nil
	}
	var list v1alpha1.RateLimitPolicyList
	in := client.InNamespace(s.namespace)
	if all {
		in = ""
	}
	if err := s.List(ctx, &list, in); err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	return list.Items, nil
}

// fleet finds the pods of policies. A pod that several policies cover is one.
func (s *session) fleet(ctx context.Context, policies []v1alpha1.RateLimitPolicy) ([]fleet.Policy, error) {
	out := make([]fleet.Policy, len(policies))
	byNamespace := map[string][]*fleet.Pod{}
	for i := range policies {
		out[i].RateLimitPolicy = policies[i]
		ns := policies[i].Namespace
		if _, done := byNamespace[ns]; !done {
			pods, err := s.podsOf(ctx, ns)
			if err != nil {
				return nil, err
			}
			byNamespace[ns] = pods
		}
		for _, p := range byNamespace[ns] {
			if target.Covers(&policies[i], p.Owners) {
				out[i].Pods = append(out[i].Pods, p)
			}
		}
	}
	return out, nil
}

// podsOf lists the pods of a namespace that have not ended, by name, with the workloads that they belong to.
func (s *session) podsOf(ctx context.Context, namespace string) ([]*fleet.Pod, error) {
	var list corev1.PodList
	if err := s.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("pods of namespace %s: %w", namespace, err)
	}
	sets := replicaSets{}
	var metas metav1.PartialObjectMetadataList
	metas.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := s.List(ctx, &metas, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("replica sets of namespace %s: %w", namespace, err)
	}
	for i := range metas.Items {
		sets[metas.Items[i].Name] = &metas.Items[i]
	}
	var out []*fleet.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		owners, err := target.Owners(ctx, pod, sets)
		if err != nil {
			return nil, err
		}
		out = append(out, &fleet.Pod{Pod: *pod, Owners: owners})
	}
	slices.SortFunc(out, func(a, b *fleet.Pod) int { return cmp.Or(strings.Compare(a.Name, b.Name)) })
	return out, nil
}

// distinct lists the pods of policies, each once.
func distinct(policies []fleet.Policy) []*fleet.Pod {
	var out []*fleet.Pod
	seen := map[*fleet.Pod]bool{}
	for i := range policies {
		for _, p := range policies[i].Pods {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// replicaSets are those of one namespace, read at once: a reader for target.Owners.
type replicaSets map[string]*metav1.PartialObjectMetadata

// Get implements client.Reader.
func (r replicaSets) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, out := r[key.Name], into.(*metav1.PartialObjectMetadata)
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "replicasets"}, key.Name)
	}
	found.DeepCopyInto(out)
	return nil
}

// List implements client.Reader.
func (replicaSets) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("replica sets are looked up by name")
}
