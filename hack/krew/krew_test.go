// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// plugin is krew's manifest, as its index reads it: what it does not know it refuses.
type plugin struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version, ShortDescription, Description, Caveats, Homepage string
		Platforms                                                 []struct {
			URI      string
			Sha256   string
			Selector *metav1.LabelSelector
			Files    []struct{ From, To string }
			Bin      string
		}
	} `json:"spec"`
}

func TestTheManifestIsWhatKrewTakes(t *testing.T) {
	var archives []Archive
	for _, p := range platforms {
		archives = append(archives, Archive{OS: p.os, Arch: p.arch, Binary: p.binary(), File: "kubectl-headgate_" + p.os + "_" + p.arch + ".tar.gz", Sum: strings.Repeat("0a", 32)})
	}
	text, err := Manifest("v0.3.0", archives)
	if err != nil {
		t.Fatal(err)
	}
	var got plugin
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if got.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || got.Kind != "Plugin" {
		t.Errorf("it is a %s of %s", got.Kind, got.APIVersion)
	}
	if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(got.Metadata.Name) || "kubectl-"+got.Metadata.Name != "kubectl-headgate" {
		t.Errorf("the plugin %q would be called by another name", got.Metadata.Name)
	}
	if s := got.Spec.ShortDescription; s == "" || len(s) > 80 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("short description %q is not one line without an end", s)
	}
	if got.Spec.Version != "v0.3.0" || got.Spec.Description == "" || got.Spec.Homepage == "" {
		t.Errorf("%+v", got.Spec)
	}
	seen := map[string]bool{}
	for _, p := range got.Spec.Platforms {
		selector, err := metav1.LabelSelectorAsSelector(p.Selector)
		if err != nil || seen[selector.String()] {
			t.Errorf("platform %v: %v, or there twice", p.Selector, err)
		}
		seen[selector.String()] = true
		if !strings.HasPrefix(p.URI, "https://") || !strings.Contains(p.URI, "/v0.3.0/") || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.Sha256) {
			t.Errorf("archive %s with sum %s", p.URI, p.Sha256)
		}
		if len(p.Files) != 2 || p.Files[0].From != p.Bin || strings.Contains(p.Bin, "/") {
			t.Errorf("files %v, program %s", p.Files, p.Bin)
		}
	}
	if len(seen) != len(platforms) {
		t.Errorf("%d platforms, want %d", len(seen), len(platforms))
	}
}

func TestAnArchiveHoldsTheProgramAndItsLicense(t *testing.T) {
	folder := t.TempDir()
	program, license, archive := filepath.Join(folder, "kubectl-headgate"), filepath.Join(folder, "LICENSE"), filepath.Join(folder, "a.tar.gz")
	for _, f := range []string{program, license} {
		if err := os.WriteFile(f, []byte(filepath.Base(f)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := pack(archive, program, license)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pack(archive, program, license); err != nil || again != sum || len(sum) != 64 {
		t.Errorf("packing twice: %q and %q, %v", sum, again, err)
	}
	in, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	zip, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for pile := tar.NewReader(zip); ; {
		h, err := pile.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
	if modes["kubectl-headgate"] != 0o755 || modes["LICENSE"] != 0o644 || len(modes) != 2 {
		t.Errorf("%v", modes)
	}
}

func TestAVersionThatIsNoReleaseIsRefused(t *testing.T) {
	for _, v := range []string{"", "0.3.0", "v1", "latest"} {
		if err := run(v, t.TempDir(), "none"); err == nil {
			t.Errorf("%q was taken", v)
		}
	}
}
