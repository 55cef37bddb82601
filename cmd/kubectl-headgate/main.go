// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-headgate is the kubectl plugin: what pods enforce now, and what would happen to a request.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/headgate/headgate/cmd/kubectl-headgate/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := plugin.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}
