// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// Whoever collects logs parses both programs' lines alike, also while somebody looks closer.
func TestLogLinesAreJSONWithTheSidecarsKeys(t *testing.T) {
	for name, debug := range map[string]bool{"as usual": false, "with --debug": true} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := logger(&out, debug)
			log.V(1).Info("Detail", "pod", "shop/a")
			log.Info("News", "pod", "shop/a")
			log.Error(errors.New("why"), "Trouble", "pod", "shop/a")
			want := []map[string]string{
				{"level": "DEBUG", "msg": "Detail", "pod": "shop/a"},
				{"level": "INFO", "msg": "News", "pod": "shop/a"},
				{"level": "ERROR", "msg": "Trouble", "pod": "shop/a", "error": "why"},
			}
			if !debug {
				want = want[1:]
			}
			lines := json.NewDecoder(&out)
			for _, keys := range want {
				var line map[string]string
				if err := lines.Decode(&line); err != nil {
					t.Fatal(err)
				}
				if _, err := time.Parse(time.RFC3339, line["time"]); err != nil {
					t.Error(err)
				}
				delete(line, "time")
				for key, value := range line {
					if keys[key] != value {
						t.Errorf("%s is %q, want %q", key, value, keys[key])
					}
				}
				if len(line) != len(keys) {
					t.Errorf("keys of %v, want those of %v", line, keys)
				}
			}
			if lines.More() {
				t.Error("more was logged than is wanted")
			}
		})
	}
}
