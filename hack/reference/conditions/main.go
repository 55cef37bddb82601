// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conditions writes the reference of conditions, their reasons and events from the constants of the API.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: conditions SOURCE PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
		os.Exit(1)
	}
}

func run(source, page string) error {
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	text, err := render(file)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// render writes a table for each block of constants, under the block's comment. A constant without a comment is refused.
func render(file *ast.File) (string, error) {
	var b strings.Builder
	b.WriteString("# Conditions, reasons and events\n\nWritten by `make generate` from `api/v1alpha1/conditions.go`. What to do about each: [operations.md](../operations.md#conditions-and-what-to-do).\n" +
		"Their messages say it too: `kubectl describe hrlp POLICY -n NS`.\n")
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| | meaning |\n|---|---|\n", strings.TrimSuffix(strings.TrimSpace(block.Doc.Text()), "."))
		for _, s := range block.Specs {
			c := s.(*ast.ValueSpec)
			value, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				return "", fmt.Errorf("constant %s: %w", c.Names[0], err)
			}
			says := strings.Join(strings.Fields(c.Doc.Text()), " ")
			says, found := strings.CutPrefix(says, c.Names[0].Name)
			if !found {
				return "", fmt.Errorf("constant %s has no comment that begins with its name: write what it means to a user", c.Names[0])
			}
			says = strings.TrimLeft(says, ":, ")
			fmt.Fprintf(&b, "| `%s` | %s |\n", value, says)
		}
	}
	return b.String(), nil
}
