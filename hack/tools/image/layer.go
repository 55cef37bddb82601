// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
)

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

func layerFiles(program string, binary []byte) []file {
	return []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "tmp/", mode: 0o1777},
		{path: program, mode: 0o755, content: binary},
	}
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
