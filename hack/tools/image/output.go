// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// save writes the archive under a temporary name first, so that a reader never
// finds half of one.
func save(img v1.Image, tag name.Tag, output string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	partial := output + ".partial"
	if err := tarball.WriteToFile(partial, tag, img); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return os.Rename(partial, output)
}

// push takes the credentials that `docker login` has stored.
func push(img v1.Image, tag name.Tag) error {
	if err := remote.Write(tag, img, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	return nil
}
