// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-headgate is the kubectl plugin: what pods enforce now, what is wrong, and what would happen to a request.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // whatever a kubeconfig signs in with

	"github.com/headgate/headgate/cmd/kubectl-headgate/plugin"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := plugin.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	code, silent := plugin.Status(err)
	if !silent {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	return code
}
