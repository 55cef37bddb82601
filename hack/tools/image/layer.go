// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// caBundles are the places where distributions keep the bundle of CA certificates.
var caBundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

const passwd = `root:x:0:0:root:/:/nologin
nonroot:x:65532:65532:nonroot:/:/nologin
`

const group = `root:x:0:
nonroot:x:65532:
`

// file is one entry of the layer; a nil content makes it a folder.
type file struct {
	path    string
	mode    int64
	content []byte
}

type layerContent struct{ bytes []byte }

func (l layerContent) reader() *bytes.Reader { return bytes.NewReader(l.bytes) }

func layerFiles(opts options) ([]file, error) {
	files := []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "tmp/", mode: 0o1777},
	}
	if opts.caCerts {
		bundle, err := readFirst(caBundles)
		if err != nil {
			return nil, fmt.Errorf("CA certificates: %w", err)
		}
		files = append(files,
			file{path: "etc/ssl/", mode: 0o755},
			file{path: "etc/ssl/certs/", mode: 0o755},
			file{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: bundle})
	}
	for _, binary := range opts.binaries {
		content, err := os.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("binary: %w", err)
		}
		files = append(files, file{path: path.Clean(filepath.Base(binary)), mode: 0o755, content: content})
	}
	return files, nil
}

// layerTar leaves times and owners zero: they would make two equal images differ.
func layerTar(files []file) (layerContent, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return layerContent{}, fmt.Errorf("layer entry %s: %w", f.path, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return layerContent{}, fmt.Errorf("layer entry %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return layerContent{}, fmt.Errorf("layer: %w", err)
	}
	return layerContent{buf.Bytes()}, nil
}

func readFirst(paths []string) ([]byte, error) {
	var first error
	for _, p := range paths {
		content, err := os.ReadFile(p)
		if err == nil {
			return content, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}
