// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tracked lists the files under version control.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Fields(string(out))
}

func TestTheTopLevelHoldsWhatIsDecidedAndNothingElse(t *testing.T) {
	allowed := []string{
		"api", "charts", "cmd", "config", "controllers", "docs", "hack", "limiter", "sidecar", "test",
		"LICENSE", "Makefile", "PROJECT", "README.md", "go.mod", "go.sum",
	}
	for _, file := range tracked(t) {
		top, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s: %s does not belong at the top level", file, top)
		}
	}
}

func TestPackagesAreNamedForWhatTheyDecide(t *testing.T) {
	vague := regexp.MustCompile(`(^|/)(utils?|common|helpers?|misc|shared)(/|$)`)
	for _, file := range tracked(t) {
		if filepath.Ext(file) == ".go" && vague.MatchString(filepath.Dir(file)) {
			t.Errorf("%s: name the package for what it decides", file)
		}
	}
}
