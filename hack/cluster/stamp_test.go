// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

func TestTheStampChangesWithEverythingThatDecidesTheBinary(t *testing.T) {
	tree := fstest.MapFS{"go.mod": {Data: []byte("module a")}, "go.sum": {Data: []byte("sum")}}
	files, parts := []string{"go.mod", "go.sum"}, []string{"go1.26", "-s -w"}
	stamp := func(tree fstest.MapFS, files, parts []string) string {
		t.Helper()
		got, err := stampOf(tree, files, parts)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := stamp(tree, files, parts)
	if got := stamp(tree, []string{"go.sum", "go.mod"}, []string{"-s -w", "go1.26"}); got != base {
		t.Error("another order is another stamp")
	}
	for name, got := range map[string]string{
		"another Go":        stamp(tree, files, []string{"go1.27", "-s -w"}),
		"another flag":      stamp(tree, files, []string{"go1.26"}),
		"another content":   stamp(fstest.MapFS{"go.mod": {Data: []byte("module b")}, "go.sum": tree["go.sum"]}, files, parts),
		"contents swapped":  stamp(fstest.MapFS{"go.mod": tree["go.sum"], "go.sum": tree["go.mod"]}, files, parts),
		"one file the less": stamp(tree, files[:1], parts),
	} {
		if got == base {
			t.Errorf("%s is the same stamp", name)
		}
	}
	if _, err := stampOf(tree, []string{"missing"}, nil); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestATargetIsUpToDateOnlyWithStampAndBinaries(t *testing.T) {
	s, err := newSettings(func(string) string { return t.TempDir() })
	if err != nil {
		t.Fatal(err)
	}
	tg := target{"two binaries", "m", map[string]string{"a": "./a", "b": "./b"}}
	write := func(path, content string) {
		t.Helper()
		if err := writeFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(s.bin, "a"), "")
	write(filepath.Join(s.bin, "b"), "")
	if tg.upToDate(s, "1") {
		t.Error("up to date without a stamp")
	}
	write(tg.stampPath(s), "1")
	if !tg.upToDate(s, "1") {
		t.Error("not up to date with stamp and binaries")
	}
	if tg.upToDate(s, "2") {
		t.Error("up to date with another stamp")
	}
	if err := os.Remove(filepath.Join(s.bin, "b")); err != nil {
		t.Fatal(err)
	}
	if tg.upToDate(s, "1") {
		t.Error("up to date without one of its binaries")
	}
}
