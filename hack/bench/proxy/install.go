// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// install brings the peers and the load generators from Debian, where they are missing.
func install() error {
	packages := map[string]string{"nginx": "nginx-light", "haproxy": "haproxy", "wrk": "wrk", "h2load": "nghttp2-client", "caddy": "caddy"}
	var missing []string
	for program, name := range packages {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, missing...)} {
		cmd := exec.Command("apt-get", args...)
		// Nothing is to be started: the measurement starts them itself.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
