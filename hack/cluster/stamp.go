// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// stamp is the hash of all that decides what a target's binaries are.
func (t target) stamp(root string) (string, error) {
	files := []string{"go.mod", "go.sum"}
	for _, pkg := range t.packages {
		if !strings.HasPrefix(pkg, "./") {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(root, t.module, pkg, "*.go"))
		if err != nil {
			return "", fmt.Errorf("stamp of %s: %w", t.name, err)
		}
		for _, source := range sources {
			files = append(files, filepath.Join(pkg, filepath.Base(source)))
		}
	}
	parts := slices.Concat([]string{runtime.Version(), runtime.GOARCH}, buildEnv, buildFlags)
	for binary, pkg := range t.packages {
		parts = append(parts, binary+"="+pkg)
	}
	return stampOf(os.DirFS(filepath.Join(root, t.module)), files, parts)
}

// stampOf hashes files and other parts; their order does not matter.
func stampOf(tree fs.FS, files, parts []string) (string, error) {
	entries := slices.Clone(parts)
	for _, name := range files {
		content, err := fs.ReadFile(tree, filepath.ToSlash(filepath.Clean(name)))
		if err != nil {
			return "", fmt.Errorf("stamp: %w", err)
		}
		sum := sha256.Sum256(content)
		entries = append(entries, name+" "+hex.EncodeToString(sum[:]))
	}
	slices.Sort(entries)
	sum := sha256.Sum256([]byte(strings.Join(entries, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

func (t target) stampPath(s settings) string {
	return filepath.Join(s.cache, "stamps", strings.ReplaceAll(t.name, " ", "-"))
}

// upToDate wants the stamp and the binaries: either may have been deleted.
func (t target) upToDate(s settings, stamp string) bool {
	for binary := range t.packages {
		if _, err := os.Stat(s.binary(binary)); err != nil {
			return false
		}
	}
	content, err := os.ReadFile(t.stampPath(s))
	return err == nil && string(content) == stamp
}
