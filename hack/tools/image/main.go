// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image writes a container image from static binaries: one layer, no
// daemon, no base image.
//
//	image -o out.tar -t localhost/headgate/echo:1 [-entrypoint /echo] [-ca-certs] bin/echo [bin/other ...]
//	image -push -t registry.example/headgate/echo:1 bin/echo
//
// The archive has the form that `ctr images import`, `docker load`, `kind load
// image-archive` and `podman load` take. The same input always gives the same
// bytes, so that a tag made from the content names exactly one image.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	var opts options
	flag.StringVar(&opts.output, "o", "", "archive to write")
	flag.StringVar(&opts.tag, "t", "", "name:tag of the image")
	flag.StringVar(&opts.entrypoint, "entrypoint", "", "entrypoint (default: the first binary, in /)")
	flag.StringVar(&opts.arch, "arch", runtime.GOARCH, "architecture of the binaries")
	flag.BoolVar(&opts.caCerts, "ca-certs", false, "include this machine's bundle of CA certificates")
	flag.BoolVar(&opts.push, "push", false, "push the image to the registry that its name starts with")
	flag.Parse()
	opts.binaries = flag.Args()

	if err := run(opts); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(opts options) error {
	if opts.output == "" && !opts.push || opts.tag == "" || len(opts.binaries) == 0 {
		return errors.New("usage: image [-o out.tar] [-push] -t name:tag [-entrypoint /x] binary")
	}
	if opts.entrypoint == "" {
		opts.entrypoint = "/" + filepath.Base(opts.binaries[0])
	}
	img, err := build(opts)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(opts.tag)
	if err != nil {
		return fmt.Errorf("image name %q: %w", opts.tag, err)
	}
	if opts.output != "" {
		if err := save(img, tag, opts.output); err != nil {
			return err
		}
	}
	if opts.push {
		return push(img, tag)
	}
	return nil
}
