// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Repository is the root of the source tree, found from the current folder.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "charts", "headgate", "Chart.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("charts/headgate: not found; run this inside of the repository")
		}
		dir = parent
	}
}
