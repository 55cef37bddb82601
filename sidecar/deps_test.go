package sidecar_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The sidecar runs in every pod: what it links is paid for in each of them.
func TestTheBinaryLinksNoKubernetesLibraries(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/headgate/headgate/cmd/headgate-sidecar").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "sigs.k8s.io/") || strings.HasPrefix(path, "github.com/headgate/headgate/controllers") {
			t.Errorf("links %s", path)
		}
		if path == "testing" {
			t.Error("links a testing package")
		}
	}
}
