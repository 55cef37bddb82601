// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

// heed is how long the operator may take to act.
const heed = 10 * time.Second

func newRelease(s *session) *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "release POD",
		Short: "Say that a pod has ended, though nothing proves it: its share goes to the others",
		Long: `Says that POD has ended, though neither its sidecar nor the kubelet nor its node says so. Its share of every limit goes to the
other pods at once. If the pod still serves, all pods together admit more than the limit until it ends: be sure.`,
		Example: `  # The condition QuotaHealthy says that the share of this pod is reserved, and its machine is known to be off
  kubectl headgate release checkout-7d4b9-x2x5k -n shop`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.connect(); err != nil {
				return err
			}
			return s.release(cmd.Context(), args[0], force)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "release it even though the cluster shows the pod as ready")
	return c
}

// release writes the annotation that releases a pod's share, and waits until the operator has acted on it.
func (s *session) release(ctx context.Context, pod string, force bool) error {
	if err := s.mayHaveEnded(ctx, pod); err != nil && !force {
		return err
	}
	var list v1alpha1.RateLimitPolicyList
	if err := s.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("policies of namespace %s: %w", s.namespace, err)
	}
	policies := slices.DeleteFunc(list.Items, func(p v1alpha1.RateLimitPolicy) bool { return !reserves(&p, pod) })
	if len(policies) == 0 {
		return fmt.Errorf("no policy in namespace %s reserves a share for pod %s: nothing is to be released (kubectl get hrlp -n %[1]s)", s.namespace, pod)
	}
	for i := range policies {
		p := &policies[i]
		before := p.DeepCopy()
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationRelease, strings.TrimPrefix(p.Annotations[v1alpha1.AnnotationRelease]+","+pod, ","))
		if err := s.Patch(ctx, p, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("policy %s: %w", p.Name, err)
		}
		if err := s.heeded(ctx, p); err != nil {
			return err
		}
		fmt.Fprintf(s.streams.Out, "share of pod %s released in policy %s\n", pod, p.Name)
	}
	return nil
}

// mayHaveEnded refuses to take a pod for ended that the cluster shows as ready.
func (s *session) mayHaveEnded(ctx context.Context, name string) error {
	var pod corev1.Pod
	err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	if fleet.Ready(&pod) {
		return fmt.Errorf("pod %s is ready, so it has not ended; delete it first, or repeat with --force if you know better", name)
	}
	return nil
}

// reserves reports whether a policy says that it keeps a share for the pod, or says so of more pods than it names.
func reserves(p *v1alpha1.RateLimitPolicy, pod string) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, string(v1alpha1.ConditionQuotaHealthy))
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(v1alpha1.ReasonReserved) &&
		(strings.Contains(c.Message, pod+" (") || strings.Contains(c.Message, " more."))
}

// heeded waits until the operator has taken the annotation away.
func (s *session) heeded(ctx context.Context, p *v1alpha1.RateLimitPolicy) error {
	ctx, cancel := context.WithTimeout(ctx, heed)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := s.Get(ctx, client.ObjectKeyFromObject(p), p); err == nil && p.Annotations[v1alpha1.AnnotationRelease] == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("policy %s: the operator has not acted within %s: is it running? (kubectl get pods -n headgate-system)", p.Name, heed)
		}
	}
}
