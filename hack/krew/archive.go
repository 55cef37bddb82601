// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed headgate.yaml
var manifest string

// Archive is the plugin for one platform.
type Archive struct{ OS, Arch, File, Binary, Sum string }

// Manifest is what krew's index wants of a release.
func Manifest(version string, archives []Archive) ([]byte, error) {
	t, err := template.New("manifest").Option("missingkey=error").Parse(manifest)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{"Version": version, "Archives": archives}); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return b.Bytes(), nil
}

// pack writes files to an archive, the same bytes for the same files, and returns its checksum.
func pack(path string, files ...string) (sum string, err error) {
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	zip := gzip.NewWriter(io.MultiWriter(out, hash))
	pile := tar.NewWriter(zip)
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		mode := int64(0o644)
		if i == 0 {
			mode = 0o755
		}
		if err := pile.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: mode, Size: int64(len(content))}); err != nil {
			return "", err
		}
		if _, err := pile.Write(content); err != nil {
			return "", err
		}
	}
	if err := errors.Join(pile.Close(), zip.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
