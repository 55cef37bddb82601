// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command krew builds the kubectl plugin for every platform, and writes archives and krew's manifest of them to dist/krew.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	version := flag.String("version", "", "of the release, such as v0.3.0 (required)")
	out := flag.String("out", "dist/krew", "folder to write to")
	only := flag.String("only", "", "one platform alone, such as linux/amd64")
	flag.Parse()
	if err := run(*version, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func run(version, out, only string) error {
	if !release.MatchString(version) {
		return fmt.Errorf("version %q: write a release, such as -version v0.3.0", version)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var archives []Archive
	for _, p := range platforms {
		if only != "" && p.String() != only {
			continue
		}
		fmt.Println("building", p)
		a, err := p.build(version, out)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		archives = append(archives, a)
	}
	text, err := Manifest(version, archives)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "headgate.yaml"), text, 0o644)
}

// platform is one that krew knows.
type platform struct{ os, arch string }

var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the program's name there.
func (p platform) binary() string {
	if p.os == "windows" {
		return "kubectl-headgate.exe"
	}
	return "kubectl-headgate"
}

// build makes the program and packs it.
func (p platform) build(version, out string) (Archive, error) {
	folder, err := os.MkdirTemp("", "headgate-krew-")
	if err != nil {
		return Archive{}, err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, p.binary())
	const variable = "github.com/headgate/headgate/api/release.Linked"
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X "+variable+"="+version, "-o", program, "./cmd/kubectl-headgate")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if said, err := c.CombinedOutput(); err != nil {
		return Archive{}, fmt.Errorf("build: %w: %s", err, strings.TrimSpace(string(said)))
	}
	a := Archive{OS: p.os, Arch: p.arch, Binary: p.binary(), File: fmt.Sprintf("kubectl-headgate_%s_%s.tar.gz", p.os, p.arch)}
	a.Sum, err = pack(filepath.Join(out, a.File), program, "LICENSE")
	return a, err
}
