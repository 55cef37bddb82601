// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows one limit holding while pods come and go: it starts a cluster, installs the operator, applies a
// policy, sends three times the limit, scales, kills a pod, and lets the oracle judge what every pod has recorded.
//
//	demo         the demo; it ends with exit code 1 when the promise was broken
//	demo down    remove all that it made
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/headgate/headgate/hack/progress"

	"github.com/headgate/headgate/test/testbed"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	unlock, err := testbed.Lock()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	defer unlock()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := progress.New(os.Stdout)
	switch {
	case len(args) == 0:
		err = demo(ctx, p)
	case len(args) == 1 && args[0] == "down":
		err = down(ctx, p)
	default:
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/demo [down]   (make demo, make demo-down)")
		return 2
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "\ninterrupted: the load has ended. What was started is still there (the cluster, release headgate, namespace %s):\n"+
			"`make demo` starts over, `make demo-down` removes it.\n", namespace)
		return 130
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ndemo: FAILED:", err)
		return 1
	}
	return 0
}

func demo(ctx context.Context, p *progress.Progress) error {
	s, err := prepare(ctx, p)
	if err != nil {
		return err
	}
	seen, err := s.play(ctx, p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	broken := errors.Join(err, s.judge(ctx, seen), s.stopRecording(ctx, p))
	s.farewell()
	return broken
}
