// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/kubectl-headgate/overview"
)

// shortPatience is how long a sidecar may take where many are asked for the look of it.
const shortPatience = 3 * time.Second

func newStatus(s *session) *cobra.Command {
	var all bool
	var output string
	c := &cobra.Command{
		Use:   "status [POLICY]",
		Short: "Say how policies stand: what is enforced, in which pods, what is wrong and what to do",
		Long: `Says how policies stand: which pods enforce which generation, what each pod's part is, whether the sidecars are connected, and,
where something is not as it should be, what it is and what to do about it.

PODS is how many pods have acknowledged this generation, as the operator says; CONNECTED how many have a stream to the operator, as
they say themselves when they are asked.`,
		Example: `  # All policies of a namespace, or of the cluster
  kubectl headgate status -n shop
  kubectl headgate status -A

  # One policy with its limits and each of its pods
  kubectl headgate status checkout -n shop -o wide`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completePolicies,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.connect(); err != nil {
				return err
			}
			return s.status(cmd.Context(), args, all, output)
		},
	}
	allNamespaces(c, &all)
	c.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml; a table when absent")
	return c
}

func (s *session) status(ctx context.Context, args []string, all bool, output string) error {
	policies, err := s.policies(ctx, all, args...)
	if err != nil {
		return err
	}
	found, err := s.fleet(ctx, policies)
	if err != nil {
		return err
	}
	asking := s.interviewer(shortPatience)
	defer asking.Close()
	asking.ask(ctx, distinct(found))
	rows := make([]overview.Policy, len(found))
	for i := range found {
		rows[i] = overview.Of(&found[i], time.Now())
	}
	switch output {
	case "", "wide":
	default:
		return printObject(s.streams.Out, output, "wide, json or yaml", map[string]any{"policies": rows})
	}
	if len(rows) == 0 {
		where := "namespace " + s.namespace
		if all {
			where = "the cluster"
		}
		fmt.Fprintf(s.streams.ErrOut, "No policies in %s.\n", where)
		return nil
	}
	return overview.Fprint(s.streams.Out, rows, all, output == "wide")
}
