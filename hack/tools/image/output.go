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
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// typeSPDX is the type of what says what an image is made of.
const typeSPDX types.MediaType = "application/spdx+json"

// save writes the output under a temporary name first, so that a reader never
// finds half of one.
func save(parts []part, tag name.Tag, output string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	partial := output + ".partial"
	if len(parts) == 1 {
		if err := tarball.WriteToFile(partial, tag, parts[0].image); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		return os.Rename(partial, output)
	}
	for _, old := range []string{partial, output} {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("output folder: %w", err)
		}
	}
	folder, err := layout.Write(partial, empty.Index)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	names := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag.TagStr()})
	if err := folder.AppendIndex(indexOf(parts), names); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return os.Rename(partial, output)
}

func indexOf(parts []part) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range parts {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: p.image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
	}
	return index
}

// push takes the credentials that `docker login` has stored. What an image is made of is pushed beside it, and refers to it.
func push(parts []part, tag name.Tag) error {
	auth := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	var err error
	if len(parts) == 1 {
		err = remote.Write(tag, parts[0].image, auth)
	} else {
		err = remote.WriteIndex(tag, indexOf(parts), auth)
	}
	if err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	for _, p := range parts {
		referrer, err := referrerOf(p)
		if err != nil {
			return err
		}
		digest, err := referrer.Digest()
		if err != nil {
			return fmt.Errorf("SPDX of %s: %w", tag, err)
		}
		if err := remote.Write(tag.Context().Digest(digest.String()), referrer, auth); err != nil {
			return fmt.Errorf("push SPDX of %s: %w", tag, err)
		}
	}
	return nil
}

// referrerOf is an artifact that holds what a part is made of.
func referrerOf(p part) (v1.Image, error) {
	subject, err := partial.Descriptor(p.image)
	if err != nil {
		return nil, fmt.Errorf("SPDX of %s: %w", p.name, err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), typeSPDX)
	img, err = mutate.Append(img, mutate.Addendum{Layer: static.NewLayer(p.sbom, typeSPDX)})
	if err != nil {
		return nil, fmt.Errorf("SPDX of %s: %w", p.name, err)
	}
	return mutate.Subject(img, *subject).(v1.Image), nil
}
