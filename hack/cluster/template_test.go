// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestNodeFilesAreRenderedAsTheGoldenOnes(t *testing.T) {
	n := nodes[1]
	config := nodeConfig{
		Name: n.Name(), IP: n.IP(), PodCIDR: n.PodCIDR(), Cgroup: n.Cgroup(),
		ClusterPodCIDR: podCIDR, DNS: dnsIP, Dir: "/cache/run/nodes/node2", PKI: "/cache/run/pki",
		Runc: "/usr/sbin/runc", CNIBin: "/usr/lib/cni", Snapshotter: "overlayfs",
	}
	for file, template := range nodeTemplates {
		compareGolden(t, filepath.Base(file), template, config)
	}
}

func TestManifestsAreRenderedAsTheGoldenOnes(t *testing.T) {
	data := map[string]any{"DNS": dnsIP, "MachineIP": machineIP, "Port": metricsPort, "CA": "Y2E="}
	for _, name := range []string{"coredns.yaml", "metrics-server.yaml"} {
		compareGolden(t, name, name, data)
	}
	compareGolden(t, "kubeconfig.yaml", "kubeconfig.yaml",
		map[string]string{"Name": "admin", "Server": "https://127.0.0.1:6443", "CA": "Y2E=", "Cert": "Y2VydA==", "Key": "a2V5"})
}

func TestAMissingValueIsAnError(t *testing.T) {
	if _, err := render("kubeconfig.yaml", map[string]string{}); err == nil {
		t.Error("no error")
	}
}

func compareGolden(t *testing.T, file, template string, data any) {
	t.Helper()
	got, err := render(template, data)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := writeFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs from %s; run the test with -update and look at the difference", template, path)
	}
}
