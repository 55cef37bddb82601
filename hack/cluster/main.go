// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real two-node Kubernetes on this machine, from Go
// modules and a few Debian packages: no image registry, no virtual machine.
package main

import "os"

func main() { os.Exit(run(os.Args[1:])) }
