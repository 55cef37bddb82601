// Command cluster runs a real two-node Kubernetes on this machine, from Go
// modules and a few Debian packages: no image registry, no virtual machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}
