// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// printObject writes what programs read. offered is what -o may be.
func printObject(out io.Writer, format, offered string, v any) error {
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		raw, err := yaml.Marshal(v)
		if err == nil {
			_, err = out.Write(raw)
		}
		return err
	}
	return fmt.Errorf("--output %q: write %s, or leave it out for people", format, offered)
}

// allNamespaces is kubectl's -A.
func allNamespaces(c *cobra.Command, all *bool) {
	c.Flags().BoolVarP(all, "all-namespaces", "A", false, "look at all namespaces")
}
