// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/test/exposition"
)

func TestPromtoolFindsNoFaultInTheMetrics(t *testing.T) {
	for name, expose := range map[string]func() (string, error){
		"sidecar":  exposition.Sidecar,
		"operator": func() (string, error) { return exposition.Operator(true) },
	} {
		t.Run(name, func(t *testing.T) {
			text, err := expose()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "metrics")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if out := promtool(t, in, "check", "metrics"); out != "" {
				t.Errorf("promtool says:\n%s", out)
			}
		})
	}
}
