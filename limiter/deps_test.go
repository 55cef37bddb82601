// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"os/exec"
	"strings"
	"testing"
)

func TestImportersOfTheLimiterPullInTheStandardLibraryAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", "./httplimit").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(dep, "github.com/headgate/headgate/limiter") {
			t.Errorf("depends on %s", dep)
		}
	}
}
