// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// surveyed is a target as its pods stand.
type surveyed struct {
	target.Workload
	// plan is what its next pod gets; refusal why that is nothing.
	plan    injector.Plan
	refusal error
	// acting is the oldest policy: of several, it alone restarts.
	acting types.UID
	// said is the injection that the policies ask for, before anything was chosen.
	said v1alpha1.Injection
	// asked is the value of the annotation that asks for the installation's own sidecar; empty = nobody asks.
	asked string
	// marked is the hash of the injection that made no pods.
	marked string

	around   injector.Surroundings
	networks []networkingv1.NetworkPolicy
	pods     []*corev1.Pod // that live, oldest first
}

// bare lists the pods without the sidecar that could have it.
func (w *surveyed) bare() (out []*corev1.Pod) {
	for _, p := range w.pods {
		if !injector.Injected(&p.Spec) && injector.Refuse(p) == nil {
			out = append(out, p)
		}
	}
	return out
}

// stale lists the pods whose sidecar was injected in another way than the policies ask for now, in so many words: what mode
// Auto would choose today is no reason to restart what it chose yesterday.
func (w *surveyed) stale() (out []*corev1.Pod) {
	for _, p := range w.pods {
		if !injector.Injected(&p.Spec) || p.Annotations[v1alpha1.AnnotationMode] == "" {
			continue
		}
		explicit := w.said.Mode != v1alpha1.Auto
		if explicit && p.Annotations[v1alpha1.AnnotationMode] != string(w.plan.Mode) {
			out = append(out, p)
			continue
		}
		if len(w.said.Ports) == 0 {
			continue
		}
		want, err := injector.Inject(injector.Original(p), injector.Config{}, w.plan)
		if err == nil && want.Annotations[v1alpha1.AnnotationPorts] != p.Annotations[v1alpha1.AnnotationPorts] {
			out = append(out, p)
		}
	}
	return out
}

// outdated lists the pods whose sidecar has another image than a pod would get now.
func (w *surveyed) outdated(image string) (out []*corev1.Pod) {
	for _, p := range w.pods {
		if have := injector.Image(&p.Spec); have != "" && image != "" && have != image {
			out = append(out, p)
		}
	}
	return out
}

// survey looks at the pods of every target and at what is around them.
func (r *Reconciler) survey(ctx context.Context, s *scope) error {
	if s.outside != "" {
		return nil
	}
	in := client.InNamespace(s.policy.Namespace)
	var pods corev1.PodList
	var policies v1alpha1.RateLimitPolicyList
	var networks networkingv1.NetworkPolicyList
	for what, list := range map[string]client.ObjectList{"pods": &pods, "policies": &policies, "network policies": &networks} {
		if err := r.Client.List(ctx, list, in); err != nil {
			return fmt.Errorf("%s of namespace %s: %w", what, s.policy.Namespace, err)
		}
	}
	found := map[target.Workload]*surveyed{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		owners, err := target.Owners(ctx, pod, r.Client)
		if err != nil {
			return err
		}
		for _, w := range s.targets {
			if slices.Contains(owners, w) {
				if found[w] == nil {
					found[w] = &surveyed{Workload: w}
				}
				found[w].pods = append(found[w].pods, pod)
				break
			}
		}
	}
	for _, w := range s.targets {
		if found[w] != nil {
			if err := r.plan(ctx, found[w], policies.Items, networks.Items); err != nil {
				return err
			}
			s.workloads = append(s.workloads, found[w])
		}
	}
	return nil
}

// plan finds out what the next pod of a workload gets, by the newest that it has.
func (r *Reconciler) plan(ctx context.Context, w *surveyed, all []v1alpha1.RateLimitPolicy, networks []networkingv1.NetworkPolicy) error {
	slices.SortFunc(w.pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	newest := injector.Original(w.pods[len(w.pods)-1])
	var err error
	if w.around, err = injector.Around(ctx, r.Client, newest); err != nil {
		return err
	}
	policies := target.Policies(all, []target.Workload{w.Workload})
	if len(policies) == 0 {
		return nil // deleted since this reconciliation began
	}
	w.around.Default = r.Sidecar.Default
	w.said, w.acting = w.around.Default.Said(policies[0]), policies[0].UID
	if w.plan, w.refusal = injector.PlanOf(policies, newest, w.around); w.refusal == nil {
		_, w.refusal = injector.Inject(newest, injector.Config{}, w.plan)
	}
	for i := range networks {
		if selectsPod(&networks[i], newest.Labels) {
			w.networks = append(w.networks, networks[i])
		}
	}
	o := w.Object()
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("target %s: %w", w, err)
	}
	w.asked, w.marked = o.Annotations[v1alpha1.AnnotationUpgrade], o.Annotations[v1alpha1.AnnotationRefused]
	return nil
}
