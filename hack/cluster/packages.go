// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// requirement is something that the machine's distribution provides.
type requirement struct {
	pkg   string
	paths []string // any of them will do; a bare name is searched in the usual folders
}

var requirements = []requirement{
	{"conntrack", []string{"conntrack"}},
	{"containernetworking-plugins", cniPlugins},
	{"ethtool", []string{"ethtool"}},
	{"iproute2", []string{"ip"}},
	{"iptables", []string{"iptables"}},
	{"kmod", []string{"modprobe"}},
	{"nftables", []string{"nft"}},
	{"runc", []string{"runc"}},
	{"util-linux", []string{"nsenter"}},
}

// cniPlugins are the places of the bridge plugin, Debian's first.
var cniPlugins = []string{"/usr/lib/cni/bridge", "/opt/cni/bin/bridge", "/usr/libexec/cni/bridge"}

var systemFolders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// find returns the first of the requirement's paths that exists.
func (r requirement) find() (string, bool) {
	for _, p := range r.paths {
		candidates := []string{p}
		if !filepath.IsAbs(p) {
			candidates = nil
			for _, dir := range systemFolders {
				candidates = append(candidates, filepath.Join(dir, p))
			}
		}
		for _, c := range candidates {
			if _, err := os.Stat(c); err == nil {
				return c, true
			}
		}
	}
	return "", false
}

func missingPackages() []string {
	var missing []string
	for _, r := range requirements {
		if _, ok := r.find(); !ok {
			missing = append(missing, r.pkg)
		}
	}
	return missing
}

// requiredPath is for after the packages have been checked.
func requiredPath(pkg string) (string, error) {
	i := slices.IndexFunc(requirements, func(r requirement) bool { return r.pkg == pkg })
	if path, ok := requirements[i].find(); ok {
		return path, nil
	}
	return "", fmt.Errorf("%s: not installed", pkg)
}

func installPackages(ctx context.Context, missing []string) error {
	list := strings.Join(missing, " ")
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("missing: %s; there is no apt-get here, install them with your distribution's package manager", list)
	}
	run := func(args ...string) error {
		// Another apt-get may be at work: wait for it instead of failing.
		cmd := exec.CommandContext(ctx, apt, append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		// dpkg must not be killed half way through a package.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s\ninstall these packages by hand: %s", args[0], err, lastLines(string(out), 10), list)
		}
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	if err := run(append([]string{"install", "-y", "--no-install-recommends"}, missing...)...); err != nil {
		return err
	}
	if still := missingPackages(); len(still) > 0 {
		return errors.New("installed, but still not found: " + strings.Join(still, " "))
	}
	return nil
}

func lastLines(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
