// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func testBinary(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func digest(t *testing.T, img v1.Image) string {
	t.Helper()
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func TestTheSameBinariesGiveTheSameArchive(t *testing.T) {
	write := func(content string) string {
		out := filepath.Join(t.TempDir(), "out.tar")
		if err := run(options{output: out, tag: "localhost/echo:1", arch: "amd64", binaries: []string{testBinary(t, content)}}); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(archive)
	}
	if write("one") != write("one") {
		t.Error("two archives of the same binary differ")
	}
	if write("one") == write("two") {
		t.Error("archives of two binaries are the same")
	}
}

func TestTheImageRunsItsFirstBinaryAsNobody(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.tar")
	if err := run(options{output: out, tag: "localhost/echo:1", arch: "arm64", binaries: []string{testBinary(t, "x")}}); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" {
		t.Errorf("platform: got %s/%s", config.OS, config.Architecture)
	}
	if got := strings.Join(config.Config.Entrypoint, " "); got != "/echo" {
		t.Errorf("entrypoint: got %q", got)
	}
	if config.Config.User != nonroot {
		t.Errorf("user: got %q, want %q", config.Config.User, nonroot)
	}
}

func TestAPushedImageIsTheOneThatWasBuilt(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	opts := options{push: true, tag: strings.TrimPrefix(server.URL, "http://") + "/echo:1", binaries: []string{testBinary(t, "x")}}
	if err := run(opts); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(opts.tag)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	opts.entrypoint = "/echo"
	built, err := build(opts)
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, pushed) != digest(t, built) {
		t.Error("another digest")
	}
}

func TestAnImageNeedsANameAndABinary(t *testing.T) {
	for name, opts := range map[string]options{
		"no binary": {output: "x", tag: "a:1"},
		"no name":   {output: "x", binaries: []string{"b"}},
		"no output": {tag: "a:1", binaries: []string{"b"}},
		"bad name":  {output: filepath.Join(t.TempDir(), "x"), tag: "A B", binaries: []string{testBinary(t, "x")}},
	} {
		if err := run(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
