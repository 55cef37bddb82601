// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*"))

func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return out.Bytes(), nil
}

// writeKubeconfig puts the certificates into the file itself: it can be copied.
func writeKubeconfig(s settings, name, server, path string) error {
	data := map[string]string{"Name": name, "Server": server}
	for key, file := range map[string]string{"CA": "ca.crt", "Cert": name + ".crt", "Key": name + ".key"} {
		content, err := os.ReadFile(s.pki(file))
		if err != nil {
			return fmt.Errorf("kubeconfig %s: %w", name, err)
		}
		data[key] = base64.StdEncoding.EncodeToString(content)
	}
	content, err := render("kubeconfig.yaml", data)
	if err != nil {
		return err
	}
	return writeFile(path, content, 0o600)
}

// nodeConfig is what the templates of a node's files see.
type nodeConfig struct {
	Name, IP, PodCIDR, Cgroup string
	ClusterPodCIDR, DNS       string
	Dir, PKI                  string
	Runc, CNIBin, Snapshotter string
}

// nodeTemplates maps the files of a node's folder to their templates.
var nodeTemplates = map[string]string{
	"containerd.toml":          "containerd.toml",
	"kubelet.yaml":             "kubelet.yaml",
	"kube-proxy.yaml":          "kube-proxy.yaml",
	"cni/10-headgate.conflist": "cni.json",
}
