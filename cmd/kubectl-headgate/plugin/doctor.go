// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cmd/kubectl-headgate/diagnosis"
)

// Exit is an error with a status of its own for the shell. Nothing more is to be printed where Err is nil.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return "something is wrong"
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// The statuses of doctor are those of kubectl diff.
const (
	exitWrong = 1
	exitBlind = 2
)

func newDoctor(s *session) *cobra.Command {
	var all bool
	var output string
	x := &examination{session: s}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what is wrong, say why it matters and what to do",
		Long: `Looks at the operator, who leads, its webhook and certificates, at every sidecar (each is asked itself), at policies, nodes, clocks
and versions, and names causes: what is wrong, where, why it matters, and what to do, with commands to paste. What only follows from a
cause is left out.

To see whether pods get the sidecar, a pod of one target in each namespace is created by a dry run: nothing is stored, nothing runs.

Status: 0 when nothing is wrong (there may be notices), 1 when something is, 2 when the cluster could not be looked at.
It needs the rights in docs/plugin.md; what it may not look at is said.`,
		Example: `  # The operator, and the policies of a namespace
  kubectl headgate doctor -n shop

  # Everything, for a script
  kubectl headgate doctor -A -o json | jq -r '.findings[].code'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.connect(); err != nil {
				return &Exit{exitBlind, err}
			}
			return s.doctor(cmd.Context(), x, all, output)
		},
	}
	allNamespaces(c, &all)
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml; text when absent")
	c.Flags().StringVar(&x.namespace, "operator-namespace", "", "where the operator runs; absent: where the webhook's configuration says, else headgate-system")
	return c
}

func (s *session) doctor(ctx context.Context, x *examination, all bool, output string) error {
	facts, err := x.facts(ctx, all)
	if err != nil {
		return &Exit{exitBlind, err}
	}
	report := diagnosis.Diagnose(facts)
	if output != "" {
		if err := printObject(s.streams.Out, output, "json or yaml", report); err != nil {
			return &Exit{exitBlind, err}
		}
	} else {
		report.Fprint(s.streams.Out)
	}
	if report.Wrong {
		return &Exit{Code: exitWrong}
	}
	return nil
}

// Status is the exit status that an error of a command means, and whether it is to be printed.
func Status(err error) (code int, silent bool) {
	if err == nil {
		return 0, true
	}
	if exit, ok := errors.AsType[*Exit](err); ok {
		return exit.Code, exit.Err == nil
	}
	return 1, false
}
