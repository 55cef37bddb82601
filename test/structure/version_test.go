// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestTheQuickStartLoadsTheImagesThatTheChartAsksFor(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	version := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindStringSubmatch(read("charts/headgate/Chart.yaml"))
	if version == nil {
		t.Fatal("the chart says no appVersion")
	}
	for _, used := range regexp.MustCompile(`(?:IMG_TAG=|ghcr\.io/headgate/echo:)(\S+)`).FindAllStringSubmatch(read("docs/quickstart.md"), -1) {
		if used[1] != version[1] {
			t.Errorf("%q is not the chart's %s", used[0], version[1])
		}
	}
}
