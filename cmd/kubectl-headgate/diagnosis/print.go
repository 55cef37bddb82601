// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"io"
	"strings"
)

// marks of the lines of a report.
var marks = map[Level]string{Problem: "✗", Notice: "!"}

// Fprint writes the report for people.
func (r *Report) Fprint(out io.Writer) {
	for _, c := range r.Well {
		fmt.Fprintf(out, "✓ %-13s %s\n", c.Name, c.Says)
	}
	problems, notices := 0, 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Level == Problem {
			problems++
		} else {
			notices++
		}
		fmt.Fprintf(out, "\n%s %s  [%s]\n", marks[f.Level], upper(f.What), f.Code)
		lines(out, "where", some(f.Where))
		lines(out, "matters", []string{upper(f.Why)})
		lines(out, "do", append([]string{strings.TrimSuffix(upper(f.Do), ".") + "."}, indent(f.Commands)...))
	}
	switch {
	case problems == 0 && notices == 0:
		fmt.Fprintln(out, "\nNothing is wrong.")
	case problems == 0:
		fmt.Fprintf(out, "\nNothing is wrong; %s.\n", plural(notices, "notice"))
	case notices == 0:
		fmt.Fprintf(out, "\n%s.\n", upper(plural(problems, "problem")))
	default:
		fmt.Fprintf(out, "\n%s, %s.\n", plural(problems, "problem"), plural(notices, "notice"))
	}
}

func lines(out io.Writer, name string, list []string) {
	for i, line := range list {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(out, "    %-8s %s\n", name, line)
	}
}

func indent(commands []string) []string {
	out := make([]string, len(commands))
	for i, c := range commands {
		out[i] = "  " + c
	}
	return out
}

// upper begins a sentence.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
