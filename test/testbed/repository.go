// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Repository is the root of the source tree, found from the current folder.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "charts", "headgate", "Chart.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("charts/headgate: not found; run this inside of the repository")
		}
		dir = parent
	}
}

// Images names what `make images` has built.
type Images struct{ Registry, Tag string }

// BuiltImages reads what `make images` has left in bin/images.
func BuiltImages(repository string) (Images, error) {
	tag, err := os.ReadFile(filepath.Join(repository, "bin", "images", "tag"))
	if err != nil {
		return Images{}, fmt.Errorf("images: %w; run `make images-load` first", err)
	}
	registry := os.Getenv("IMG_REGISTRY")
	if registry == "" {
		registry = "localhost/headgate"
	}
	return Images{Registry: registry, Tag: strings.TrimSpace(string(tag))}, nil
}

// Name is the full name of one image: operator, sidecar or echo.
func (i Images) Name(program string) string { return i.Registry + "/" + program + ":" + i.Tag }
