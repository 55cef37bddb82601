// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: go run ./hack/cluster <command>

  up                    start the cluster, or repair it; safe to run twice
  down                  end it and remove all but the cached binaries and images
  status                show what runs
  env                   print what a shell needs: KUBECONFIG, and kubectl on the PATH
  images load a.tar...  import image archives into every node
  images list           list the images of every node
  node-exec node1 cmd   run a command in a node's namespaces
  assets                build what envtest needs and print the folder

The administrator's kubeconfig is <cache>/run/admin.kubeconfig; up prints its path.
CLUSTER=current uses the cluster of the current kubeconfig context instead.
HEADGATE_CACHE names the cache, by default headgate in the user's cache folder.
`

// errUsage makes run print the usage and exit with 2.
var errUsage = errors.New("unknown command")

// run returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, args)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		return 2
	default:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	s, err := newSettings(os.Getenv)
	if err != nil {
		return err
	}
	command, args := args[0], args[1:]
	if command == "assets" {
		return assets(ctx, s)
	}
	if command == nodeInitCommand && len(args) == 1 {
		return nodeInit(s, args[0])
	}
	switch os.Getenv("CLUSTER") {
	case "current":
		return dispatchCurrent(ctx, s, command)
	case "", "local":
		return dispatchLocal(ctx, s, command, args)
	default:
		return fmt.Errorf("CLUSTER=%s: it is either local or current", os.Getenv("CLUSTER"))
	}
}

func dispatchLocal(ctx context.Context, s settings, command string, args []string) error {
	switch {
	case command == "up" && len(args) == 0:
		return up(ctx, s)
	case command == "down" && len(args) == 0:
		return down(ctx, s)
	case command == "status" && len(args) == 0:
		return status(ctx, s)
	case command == "env" && len(args) == 0:
		fmt.Printf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", s.adminKubeconfig(), s.bin)
		return nil
	case command == "images" && len(args) > 1 && args[0] == "load":
		return loadImages(ctx, s, args[1:])
	case command == "images" && len(args) == 1 && args[0] == "list":
		return listImages(ctx, s)
	case command == "node-exec" && len(args) > 1:
		return nodeExec(ctx, s, args[0], args[1:])
	default:
		return errUsage
	}
}
