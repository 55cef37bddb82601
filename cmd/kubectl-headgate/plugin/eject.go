// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/controllers/injector"
)

func newEject(s *session) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "eject -f FILE",
		Short: "Show the workloads in a file without the sidecar; nothing is sent anywhere",
		Long: `Shows the workloads and pods in FILE as they were before inject, or before the webhook: without the sidecar, its volumes, marks and
redirect, with the app's own ports, probes and hooks. Everything else is shown as it is.

It undoes what stands in a manifest. What the webhook does to pods as they are created is undone by deleting the policy.`,
		Example: `  # The way back
  kubectl headgate eject -f injected.yaml | kubectl apply -f -

  # What is different about a pod that runs?
  kubectl get pod checkout-7d4b9-x2x5k -n shop -o yaml >with.yaml
  kubectl headgate eject -f with.yaml | diff - with.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			in, err := s.open(file)
			if err != nil {
				return err
			}
			defer in.Close()
			m, err := read(io.LimitReader(in, maxFile))
			if err != nil {
				return err
			}
			return s.rewrite(m, func(d document) ([]byte, error) { return d.changePods(injector.Eject) })
		},
	}
	filename(c, &file)
	return c
}
