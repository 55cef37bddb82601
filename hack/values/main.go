// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command values brings what values.yaml says of each value into the chart's schema, where editors and Helm find it, and into
// the table of its README. It fails for a value that nobody describes, or that only one of the two files has.
//
//	go run ./hack/values CHART
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// marker is where the table of the README begins; what is above is written by hand.
const marker = "<!-- What follows is generated from values.yaml; do not edit. -->\n"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: values CHART")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "values:", err)
		os.Exit(1)
	}
}

func run(chart string) error {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	values, err := read(text)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	if err := update(filepath.Join(chart, "values.schema.json"), func(old []byte) ([]byte, error) { return describe(old, values) }); err != nil {
		return err
	}
	return update(filepath.Join(chart, "README.md"), func(old []byte) ([]byte, error) {
		above, _, ok := strings.Cut(string(old), marker)
		if !ok {
			return nil, fmt.Errorf("the line %q is missing", strings.TrimSpace(marker))
		}
		return []byte(above + marker + table(values)), nil
	})
}

func update(file string, change func(old []byte) ([]byte, error)) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := change(old)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if bytes.Equal(text, old) {
		return nil
	}
	return os.WriteFile(file, text, 0o644)
}

// value is one value that is described.
type value struct {
	path    []string
	meaning string
	def     string // as JSON
}

// read lists the values of a values.yaml, in its order.
func read(text []byte) ([]value, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is no map")
	}
	return walk(nil, doc.Content[0])
}

// walk goes down to whatever has a comment: that is described as a whole.
func walk(path []string, node *yaml.Node) (out []value, err error) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		at := append(append([]string(nil), path...), key.Value)
		if key.HeadComment == "" {
			if content.Kind != yaml.MappingNode || len(content.Content) == 0 {
				return nil, fmt.Errorf("nobody describes %s: write a comment above it", strings.Join(at, "."))
			}
			inner, err := walk(at, content)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
			continue
		}
		var def any
		if err := content.Decode(&def); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(at, "."), err)
		}
		raw, err := json.Marshal(def)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(at, "."), err)
		}
		out = append(out, value{at, meaning(key.HeadComment), string(raw)})
	}
	return out, nil
}

// meaning is a comment as one line.
func meaning(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

func table(values []value) string {
	var w strings.Builder
	w.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
	for _, v := range values {
		fmt.Fprintf(&w, "| `%s` | `%s` | %s |\n", strings.Join(v.path, "."), v.def, strings.ReplaceAll(v.meaning, "|", "\\|"))
	}
	return w.String()
}
