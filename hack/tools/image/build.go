// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nonroot is the numeric user of every image: Kubernetes can only enforce
// runAsNonRoot when the user is a number.
const nonroot = "65532:65532"

type options struct {
	output     string
	tag        string
	entrypoint string
	arch       string
	caCerts    bool
	push       bool
	binaries   []string
}

// build returns the image without writing it.
func build(opts options) (v1.Image, error) {
	files, err := layerFiles(opts)
	if err != nil {
		return nil, err
	}
	content, err := layerTar(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(content.reader()), nil
	})
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", opts.arch
	config.Config.User = nonroot
	config.Config.Entrypoint = []string{opts.entrypoint}
	config.Config.Env = []string{"PATH=/"}
	config.Config.WorkingDir = "/"
	return mutate.ConfigFile(img, config)
}
