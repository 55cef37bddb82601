// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// thought is how long a completion may take: somebody waits at a prompt.
const thought = 3 * time.Second

// completePolicies offers the policies of the namespace.
func (s *session) completePolicies(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, &v1alpha1.RateLimitPolicyList{}, func(list client.ObjectList) (out []string) {
		for _, p := range list.(*v1alpha1.RateLimitPolicyList).Items {
			out = append(out, p.Name)
		}
		return out
	})
}

// completePods offers the pods of the namespace that carry the sidecar.
func (s *session) completePods(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return s.complete(cmd, args, &corev1.PodList{}, func(list client.ObjectList) (out []string) {
		for _, p := range list.(*corev1.PodList).Items {
			out = append(out, p.Name)
		}
		return out
	}, client.HasLabels{v1alpha1.LabelInjected})
}

func (s *session) complete(cmd *cobra.Command, args []string, list client.ObjectList, names func(client.ObjectList) []string, opts ...client.ListOption) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 || s.connect() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), thought)
	defer cancel()
	if err := s.List(ctx, list, append(opts, client.InNamespace(s.namespace))...); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(list), cobra.ShellCompDirectiveNoFileComp
}
