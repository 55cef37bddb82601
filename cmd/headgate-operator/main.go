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

	"github.com/headgate/headgate/controllers/setup"
)

func main() {
	options, err := setup.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = setup.Run(ctrl.SetupSignalHandler(), options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "headgate-operator:", err)
		os.Exit(1)
	}
}
