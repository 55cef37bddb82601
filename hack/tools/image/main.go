// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image writes a container image from a static binary: one layer, no
// daemon, no base image; and what the binary is made of, as SPDX.
//
//	image -o out.tar -t localhost/headgate/echo:1 bin/echo
//	image -push -arch amd64,arm64 -limit 20000000 -sbom bin -t registry.example/headgate/echo:1 bin/{arch}/echo
//
// For one architecture the archive has the form that `ctr images import`,
// `docker load`, `kind load image-archive` and `podman load` take; for several it
// is a folder in OCI's layout. The same input always gives the same bytes, so
// that a tag made from the content names exactly one image.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

type options struct {
	output string
	tag    string
	archs  []string
	limit  int64  // of the binary, in bytes; 0 = none
	sbom   string // folder for <name>.spdx.json; "" = none is kept
	push   bool
	binary string // "{arch}" in it stands for the architecture
}

func main() {
	var opts options
	flag.StringVar(&opts.output, "o", "", "archive to write; with several architectures, folder")
	flag.StringVar(&opts.tag, "t", "", "name:tag of the image")
	flag.Int64Var(&opts.limit, "limit", 0, "most bytes that the binary may have")
	flag.StringVar(&opts.sbom, "sbom", "", "folder in which what each binary is made of is kept as SPDX")
	flag.BoolVar(&opts.push, "push", false, "push the image to the registry that its name starts with")
	archs := flag.String("arch", runtime.GOARCH, "architectures, separated by commas; {arch} in the binary's path stands for each")
	flag.Parse()
	opts.archs = strings.Split(*archs, ",")
	opts.binary = flag.Arg(0)

	if err := run(opts); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(opts options) error {
	if opts.output == "" && !opts.push || opts.tag == "" || opts.binary == "" {
		return errors.New("usage: image [-o out.tar] [-push] [-arch amd64,arm64] [-limit bytes] [-sbom folder] -t name:tag binary")
	}
	tag, err := name.NewTag(opts.tag)
	if err != nil {
		return fmt.Errorf("image name %q: %w", opts.tag, err)
	}
	var parts []part
	for _, arch := range opts.archs {
		p, err := build(opts, arch)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	if opts.sbom != "" {
		if err := keep(parts, opts.sbom); err != nil {
			return err
		}
	}
	if opts.output != "" {
		if err := save(parts, tag, opts.output); err != nil {
			return err
		}
	}
	if opts.push {
		return push(parts, tag)
	}
	return nil
}
