// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// program is a real one, for the machine's architecture: only Go writes into a binary what it is made of.
var program = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "image-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "echo")
	if text, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", out, ".").CombinedOutput(); err != nil {
		return text, err
	}
	return os.ReadFile(out)
})

// testBinary writes a program to a folder for each architecture; more makes another program.
func testBinary(t *testing.T, more string) string {
	t.Helper()
	content, err := program()
	if err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	folder := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.Mkdir(filepath.Join(folder, arch), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, arch, "echo"), append(slices.Clone(content), arch+more...), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "{arch}", "echo")
}

func TestTheSameBinariesGiveTheSameArchive(t *testing.T) {
	write := func(content string) string {
		out := filepath.Join(t.TempDir(), "out.tar")
		if err := run(options{output: out, tag: "localhost/echo:1", archs: []string{"amd64"}, binary: testBinary(t, content)}); err != nil {
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

func TestTheImageRunsItsBinaryAsNobody(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.tar")
	if err := run(options{output: out, tag: "localhost/echo:1", archs: []string{"arm64"}, binary: testBinary(t, "")}); err != nil {
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

func TestOneNameHoldsTheImagesOfEveryArchitecture(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := run(options{output: out, tag: "localhost/echo:1", archs: []string{"amd64", "arm64"}, binary: testBinary(t, "")}); err != nil {
		t.Fatal(err)
	}
	names, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := names.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := names.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if got := architectures(t, index); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Errorf("architectures: %v", got)
	}
}

func architectures(t *testing.T, index v1.ImageIndex) (out []string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		out = append(out, m.Platform.Architecture)
	}
	return out
}

func TestWhatAnImageIsMadeOfIsPushedBesideIt(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
	defer server.Close()
	opts := options{push: true, tag: strings.TrimPrefix(server.URL, "http://") + "/echo:1", archs: []string{"amd64", "arm64"}, binary: testBinary(t, "")}
	if err := run(opts); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(opts.tag)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if got := architectures(t, index); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Errorf("architectures: %v", got)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		referrers, err := remote.Referrers(tag.Context().Digest(m.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		list, err := referrers.IndexManifest()
		if err != nil || len(list.Manifests) != 1 {
			t.Fatalf("%s: %v refer to it: %v", m.Platform.Architecture, list, err)
		}
		artifact, err := remote.Image(tag.Context().Digest(list.Manifests[0].Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := artifact.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		checkSPDX(t, text)
	}
}

// checkSPDX reads a document as others would, and looks for a module that this program links.
func checkSPDX(t *testing.T, text []byte) {
	t.Helper()
	doc, err := json.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	var linked []string
	for _, p := range doc.Packages {
		if p.PackageVersion != "" && len(p.PackageExternalReferences) == 1 {
			linked = append(linked, p.PackageName)
		}
	}
	for _, want := range []string{"stdlib", "github.com/google/go-containerregistry"} {
		if !slices.Contains(linked, want) {
			t.Errorf("%s is not among what the program links: %v", want, linked)
		}
	}
}

func TestAProgramThatHasGrownIsRefused(t *testing.T) {
	opts := options{output: filepath.Join(t.TempDir(), "x"), tag: "a:1", archs: []string{"amd64"}, binary: testBinary(t, ""), limit: 1 << 30}
	if err := run(opts); err != nil {
		t.Error(err)
	}
	opts.limit = 1000
	if err := run(opts); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("got %v", err)
	}
}

func TestAnImageNeedsANameAndABinary(t *testing.T) {
	for name, opts := range map[string]options{
		"no binary":    {output: "x", tag: "a:1"},
		"no name":      {output: "x", binary: "b"},
		"no output":    {tag: "a:1", binary: "b"},
		"bad name":     {output: filepath.Join(t.TempDir(), "x"), tag: "A B", binary: testBinary(t, "")},
		"not Go's":     {output: filepath.Join(t.TempDir(), "x"), tag: "a:1", binary: "main.go"},
		"not compiled": {output: filepath.Join(t.TempDir(), "x"), tag: "a:1", binary: filepath.Join(t.TempDir(), "{arch}")},
	} {
		opts.archs = []string{"amd64"}
		if err := run(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
