// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package structure holds the repository to the layout that docs/decisions/0001-structure.md describes.
package structure

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/headgate/headgate"

// deps lists everything that the packages need, tests left out.
func deps(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, patterns...)...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}

func TestImportsPointDownOnly(t *testing.T) {
	own := func(folders ...string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(folders, func(f string) bool {
				return path == module+"/"+f || strings.HasPrefix(path, module+"/"+f+"/")
			})
		}
	}
	kubernetes := func(path string) bool {
		return strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "sigs.k8s.io/")
	}
	tests := map[string]struct {
		packages  []string
		forbidden func(path string) bool
	}{
		"the limiter needs the standard library alone": {
			packages:  []string{"./limiter/..."},
			forbidden: func(path string) bool { return !own("limiter")(path) },
		},
		"the sidecar links nothing of Kubernetes, so that it stays small and starts at once": {
			packages:  []string{"./sidecar/...", "./cmd/headgate-sidecar"},
			forbidden: func(path string) bool { return kubernetes(path) || own("controllers", "api/v1alpha1")(path) },
		},
		"the wire contract links nothing of Kubernetes": {
			packages:  []string{"./api/quota/..."},
			forbidden: func(path string) bool { return kubernetes(path) || own("sidecar", "controllers", "limiter")(path) },
		},
		"the API types know nothing of who uses them": {
			packages:  []string{"./api/v1alpha1/..."},
			forbidden: own("sidecar", "controllers", "limiter", "api/quota"),
		},
		"the operator and the sidecar meet in the wire contract only": {
			packages:  []string{"./controllers/...", "./cmd/headgate-operator"},
			forbidden: own("sidecar", "test", "hack"),
		},
		"the algorithms know nothing of sharing": {
			packages:  []string{"./limiter"},
			forbidden: own("limiter/escrow"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, path := range deps(t, tc.packages...) {
				if tc.forbidden(path) {
					t.Errorf("%v must not need %s", tc.packages, path)
				}
			}
		})
	}
}
