// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Addresses of the cluster. They are fixed: certificates, routes and manifests
// agree on them, and the checks before a start say when something else has them.
const (
	podCIDR     = "10.244.0.0/16"
	serviceCIDR = "10.96.0.0/16"
	bridgeCIDR  = "172.30.0.0/24"
	machineIP   = "172.30.0.1"
	apiIP       = "10.96.0.1"
	dnsIP       = "10.96.0.10"
	bridgeName  = "hgbr0"
	apiPort     = 6443
	metricsPort = 4443
)

// node is one of the cluster's nodes; its index decides all its addresses.
type node struct{ index int }

var nodes = []node{{1}, {2}}

func (n node) Name() string    { return fmt.Sprintf("node%d", n.index) }
func (n node) IP() string      { return fmt.Sprintf("172.30.0.%d", n.index+1) }
func (n node) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", n.index) }
func (n node) link() string    { return "hg-" + n.Name() }

// Cgroup is the parent of all the node's pods in every cgroup hierarchy.
func (n node) Cgroup() string { return "headgate-" + n.Name() }

func nodeNamed(name string) (node, error) {
	for _, n := range nodes {
		if n.Name() == name {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("no node %q: there are node1 to node%d", name, len(nodes))
}

// settings says where things are. All lies below one cache folder; only run is
// removed when the cluster goes down.
type settings struct {
	cache  string
	bin    string // binaries, with their stamps
	images string // archives of the images that the cluster itself needs
	run    string // all state of the running cluster
}

func (s settings) pki(file string) string  { return filepath.Join(s.run, "pki", file) }
func (s settings) log(name string) string  { return filepath.Join(s.run, "logs", name+".log") }
func (s settings) nodeDir(n node) string   { return filepath.Join(s.run, "nodes", n.Name()) }
func (s settings) binary(n string) string  { return filepath.Join(s.bin, n) }
func (s settings) adminKubeconfig() string { return filepath.Join(s.run, "admin.kubeconfig") }

// hiddenInNodes are folders over which every node mounts an empty one of its own,
// so that it neither sees nor changes the machine's.
var hiddenInNodes = []string{"/run", "/var/lib", "/var/log"}

func newSettings(getenv func(string) string) (settings, error) {
	cache := getenv("HEADGATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return settings{}, fmt.Errorf("cache folder: %w; set HEADGATE_CACHE", err)
		}
		cache = filepath.Join(user, "headgate")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return settings{}, fmt.Errorf("cache folder: %w", err)
	}
	if filepath.Dir(cache) == cache {
		return settings{}, fmt.Errorf("HEADGATE_CACHE=%s: use a folder of its own", cache)
	}
	for _, hidden := range append([]string{"/proc", "/sys", "/dev"}, hiddenInNodes...) {
		if cache == hidden || strings.HasPrefix(cache, hidden+"/") {
			return settings{}, fmt.Errorf("HEADGATE_CACHE=%s: nodes cannot see folders below %s; use another one", cache, hidden)
		}
	}
	return settings{
		cache:  cache,
		bin:    filepath.Join(cache, "bin"),
		images: filepath.Join(cache, "images"),
		run:    filepath.Join(cache, "run"),
	}, nil
}

// repository is the root of the source tree, found from the current folder.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, kubernetesModule, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("%s: not found; run this inside of the repository", kubernetesModule)
		}
		dir = parent
	}
}
