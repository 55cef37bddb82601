// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command headgate-operator reconciles RateLimitPolicies, injects the sidecar and shares limits among pods.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/headgate/headgate/controllers/check"
	"github.com/headgate/headgate/controllers/setup"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "headgate-operator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "check" {
		return check.Run(ctrl.SetupSignalHandler(), args[1:], os.Stdout)
	}
	options, err := setup.Parse(args)
	if err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cluster configuration: %w", err)
	}
	return setup.Run(ctrl.SetupSignalHandler(), cfg, options)
}
