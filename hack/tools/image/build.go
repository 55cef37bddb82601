package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
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

// save writes the archive under a temporary name first, so that a reader never
// finds half of one.
func save(img v1.Image, opts options) error {
	tag, err := name.NewTag(opts.tag)
	if err != nil {
		return fmt.Errorf("image name %q: %w", opts.tag, err)
	}
	if err := os.MkdirAll(filepath.Dir(opts.output), 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	partial := opts.output + ".partial"
	if err := tarball.WriteToFile(partial, tag, img); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return os.Rename(partial, opts.output)
}
