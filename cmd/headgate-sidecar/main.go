// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command headgate-sidecar enforces a pod's share of its rate limits. See headgate-sidecar --help.
package main

import (
	"os"

	"github.com/headgate/headgate/sidecar"
)

func main() {
	os.Exit(sidecar.Main())
}
