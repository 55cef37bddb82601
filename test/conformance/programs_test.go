// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// packages are the Debian packages that bring the programs that the tests use.
var packages = map[string]string{"node": "nodejs", "curl": "curl", "wrk": "wrk", "h2load": "nghttp2-client", "nginx": "nginx-light"}

var installing sync.Mutex

// program makes sure that a program is there, and fails the test when it cannot be had.
func program(t *testing.T, name string) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", packages[name]}} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s is not there, and apt-get %s: %v\n%s", name, args[0], err, out)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
