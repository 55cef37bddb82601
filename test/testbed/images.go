// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Images names what `make images` has built.
type Images struct{ Registry, Tag string }

// Name is the full name of one image: operator, sidecar or echo.
func (i Images) Name(program string) string { return i.Registry + "/" + program + ":" + i.Tag }

// BringImages builds the programs of the repository and brings their images to where the cluster finds them.
func (c *Cluster) BringImages(ctx context.Context, repository string, out io.Writer) (Images, error) {
	target, registry := "images-load", registry()
	if !c.Local {
		target = "images-push"
		if strings.HasPrefix(registry, "localhost/") {
			return Images{}, errors.New("CLUSTER=current: the cluster cannot reach images on this machine; set IMG_REGISTRY to a registry that you can push to and it can pull from, such as IMG_REGISTRY=registry.example.com/headgate")
		}
	}
	if err := Make(ctx, repository, target, out); err != nil {
		return Images{}, err
	}
	tag, err := os.ReadFile(filepath.Join(repository, "bin", "images", "tag"))
	if err != nil {
		return Images{}, fmt.Errorf("images: %w", err)
	}
	return Images{Registry: registry, Tag: strings.TrimSpace(string(tag))}, nil
}

func registry() string {
	if r := os.Getenv("IMG_REGISTRY"); r != "" {
		return r
	}
	return "localhost/headgate"
}
