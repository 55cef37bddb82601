// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

var update = flag.Bool("update", false, "write the golden files")

func TestCompileGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, in := range inputs {
		name := strings.TrimSuffix(filepath.Base(in), ".in.yaml")
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			golden := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			got := render(t, read(t, in))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got); go test ./controllers/compile -update writes it:\n%s", golden, diff)
			}
		})
	}
}

func read(t *testing.T, path string) *v1alpha1.RateLimitPolicy {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.RateLimitPolicy{}
	if err := yaml.UnmarshalStrict(b, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// render writes the snapshot, and what each limit promises in words.
func render(t *testing.T, p *v1alpha1.RateLimitPolicy) string {
	t.Helper()
	compiled, err := compile.Policy(p, "")
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	j, err := protojson.Marshal(compile.Snapshot(compiled))
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.JSONToYAML(j)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(y)
	for _, l := range compiled.Limits {
		b.WriteString("# " + l.Name + ": " + compile.Contract(l) + "; a third: " + compile.Rate(l.Rate, 1, 3) + "\n")
	}
	return b.String()
}

func policy(change func(*v1alpha1.RateLimitPolicy)) *quotav1.Policy {
	p := &v1alpha1.RateLimitPolicy{}
	p.UID, p.Namespace, p.Name, p.Generation = "uid", "shop", "checkout", 1
	p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Rate: v1alpha1.Rate{Requests: 10, Per: "1s"}, Key: []v1alpha1.KeyPart{{Header: "X-Key"}}}}
	if change != nil {
		change(p)
	}
	out, err := compile.Policy(p, "")
	if err != nil {
		panic(err)
	}
	return out
}

func TestEditsKeepTheAccountsOfALimitUnlessTheyMakeItAnotherLimit(t *testing.T) {
	was := policy(nil).Limits[0].Id
	tests := map[string]struct {
		edit func(*v1alpha1.Limit)
		kept bool
	}{
		"another rate":               {func(l *v1alpha1.Limit) { l.Rate = v1alpha1.Rate{Requests: 1, Per: "1h"} }, true},
		"another burst":              {func(l *v1alpha1.Limit) { l.Burst = new(int64(99)) }, true},
		"another match":              {func(l *v1alpha1.Limit) { l.Match = []v1alpha1.Match{{Methods: []string{"GET"}}} }, true},
		"the key in other letters":   {func(l *v1alpha1.Limit) { l.Key[0].Header = "x-key" }, true},
		"the default scope, written": {func(l *v1alpha1.Limit) { l.Scope = v1alpha1.ScopeTotal }, true},
		"another name":               {func(l *v1alpha1.Limit) { l.Name = "every" }, false},
		"another key":                {func(l *v1alpha1.Limit) { l.Key[0].Header = "x-other" }, false},
		"no key":                     {func(l *v1alpha1.Limit) { l.Key = nil }, false},
		"another scope":              {func(l *v1alpha1.Limit) { l.Scope = v1alpha1.ScopePerPod }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			is := policy(func(p *v1alpha1.RateLimitPolicy) { tc.edit(&p.Spec.Limits[0]) }).Limits[0].Id
			if (is == was) != tc.kept {
				t.Errorf("identity %s, was %s", is, was)
			}
		})
	}
}

func TestTheSnapshotDoesNotDependOnTheOrderOfPolicies(t *testing.T) {
	a := policy(nil)
	b := policy(func(p *v1alpha1.RateLimitPolicy) { p.Name, p.UID = "other", "uid2" })
	one, two := compile.Snapshot(a, b), compile.Snapshot(b, a)
	if diff := cmp.Diff(one, two, protocmp.Transform()); diff != "" {
		t.Errorf("pods would be told of a change that is none:\n%s", diff)
	}
	if compile.Snapshot(a).Version == one.Version {
		t.Error("different content has the same version: pods would not be told")
	}
}
