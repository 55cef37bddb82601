// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTheDocumentedScrapeConfigurationIsOne(t *testing.T) {
	page, err := os.ReadFile(repository + "/docs/autoscaling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(string(page), "\n## Prometheus\n")
	_, block, _ := strings.Cut(below, "```yaml\n")
	block, _, ok := strings.Cut(block, "\n```")
	if !ok {
		t.Fatal("the page has no configuration below Prometheus")
	}
	var config map[string]any
	if err := yaml.UnmarshalStrict([]byte(block), &config); err != nil {
		t.Fatal(err)
	}
	for _, job := range config["scrape_configs"].([]any) {
		job := job.(map[string]any)
		if job["kubernetes_sd_configs"] == nil {
			t.Errorf("job %v finds nothing", job["job_name"])
		}
		delete(job, "kubernetes_sd_configs") // which Debian's promtool is built without
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "config", "--syntax-only", file)
}
