// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the numeric user of every image: Kubernetes can only enforce
// runAsNonRoot when the user is a number.
const nonroot = "65532:65532"

const source = "https://github.com/headgate/headgate"

// part is the image of one architecture.
type part struct {
	name  string // of the program
	arch  string
	image v1.Image
	sbom  []byte
}

// build returns the image of one architecture without writing it.
func build(opts options, arch string) (part, error) {
	path := strings.ReplaceAll(opts.binary, "{arch}", arch)
	binary, err := os.ReadFile(path)
	if err != nil {
		return part{}, fmt.Errorf("binary: %w", err)
	}
	if opts.limit > 0 && int64(len(binary)) > opts.limit {
		return part{}, fmt.Errorf("%s has %d bytes, more than its limit of %d: see what it links since the last change (go tool nm -size -sort size)", path, len(binary), opts.limit)
	}
	p := part{name: filepath.Base(path), arch: arch}
	if p.sbom, err = sbom(p.name, binary); err != nil {
		return part{}, err
	}
	p.image, err = imageOf(p.name, arch, opts.tag[strings.LastIndexByte(opts.tag, ':')+1:], binary)
	return p, err
}

func imageOf(program, arch, version string, binary []byte) (v1.Image, error) {
	content, err := layerTar(layerFiles(program, binary))
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(content.reader()), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.User = nonroot
	config.Config.Entrypoint = []string{"/" + program}
	config.Config.Env = []string{"PATH=/"}
	config.Config.WorkingDir = "/"
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    program,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(img, config)
}
