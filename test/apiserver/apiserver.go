// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real API server for a test.
package apiserver

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Start runs an API server with etcd until the test ends, with the CRDs of the folders given. Where its binaries are not
// there the test is skipped, loudly, and fails under CI=true.
func Start(t *testing.T, crds ...string) *rest.Config {
	t.Helper()
	return StartWith(t, &envtest.WebhookInstallOptions{}, crds...)
}

// StartWith is Start with webhooks, which the API server calls where the options say; they are filled with where to serve.
func StartWith(t *testing.T, hooks *envtest.WebhookInstallOptions, crds ...string) *rest.Config {
	t.Helper()
	return Run(t, hooks, crds...).Config
}

// Server is a running API server.
type Server struct {
	Config *rest.Config
	// Folder holds the server's certificates and keys, among them the one that signs tokens.
	Folder string
}

// Run is StartWith for tests that look behind the API.
func Run(t *testing.T, hooks *envtest.WebhookInstallOptions, crds ...string) *Server {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test`, which sets it")
		}
		t.Skip("SKIPPED: no API server; run `make test`, or set KUBEBUILDER_ASSETS=$(go run ./hack/cluster assets)")
	}
	env := &envtest.Environment{CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true, WebhookInstallOptions: *hooks}
	cfg, err := env.Start()
	if err != nil {
		t.Fatalf("API server: %v", err)
	}
	*hooks = env.WebhookInstallOptions
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &Server{cfg, env.ControlPlane.GetAPIServer().CertDir}
}
