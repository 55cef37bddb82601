// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command flags writes the reference of the programs' flags: what --help of each prints.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: flags PAGE PACKAGE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "flags:", err)
		os.Exit(1)
	}
}

func run(page string, packages []string) error {
	var b bytes.Buffer
	b.WriteString("# Flags\n\nWritten by `make generate`: what `--help` of each program prints. The chart sets those that matter from its values.\n")
	for _, p := range packages {
		help := exec.Command("go", "run", p, "--help")
		help.Env = append(os.Environ(), "CGO_ENABLED=0", "KUBECONFIG=", "HEADGATE_OPERATOR=", "HEADGATE_PORTS=")
		out, err := help.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s --help: %w: %s", p, err, out)
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n```\n", p[strings.LastIndexByte(p, '/')+1:], strings.TrimSpace(string(out)))
	}
	return os.WriteFile(page, b.Bytes(), 0o644)
}
