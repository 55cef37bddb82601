// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Fprint writes a table of policies, what is wrong with each, and, with wide, its limits and pods.
func Fprint(out io.Writer, policies []Policy, namespaces, wide bool) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	head := "POLICY\tSTATE\tPODS\tCONNECTED\tGENERATION\tSHARE\tTARGETS"
	if namespaces {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(t, head)
	for i := range policies {
		p := &policies[i]
		if namespaces {
			fmt.Fprintf(t, "%s\t", p.Namespace)
		}
		connected, generation, share := "-", fmt.Sprint(p.Generation), p.Share
		if p.Connected != nil {
			connected = fmt.Sprintf("%d/%d", *p.Connected, p.Pods)
		}
		if p.Behind > 0 {
			generation += fmt.Sprintf(" (%d behind)", p.Behind)
		}
		if share == "" {
			share = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\n", p.Name, p.State, p.Enforcing, p.Pods, connected, generation, share, strings.Join(p.Targets, ","))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range policies {
		p := &policies[i]
		if wide {
			if err := p.detail(out); err != nil {
				return err
			}
		}
		if len(p.Troubles) > 0 {
			fmt.Fprintf(out, "\n%s/%s:\n", p.Namespace, p.Name)
		}
		for _, w := range p.Troubles {
			fmt.Fprintf(out, "  %s\n    %s\n", w.What, w.Do)
		}
	}
	return nil
}

// detail writes a policy's limits and pods.
func (p *Policy) detail(out io.Writer) error {
	fmt.Fprintf(out, "\n%s/%s\n", p.Namespace, p.Name)
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(p.Limits) > 0 {
		fmt.Fprintln(t, "  LIMIT\tSHARE\tPODS\tCONTRACT")
	}
	for _, l := range p.Limits {
		fmt.Fprintf(t, "  %s\t%s\t%d\t%s\n", l.Name, dash(l.Share), l.Pods, l.Contract)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(p.Members) > 0 {
		fmt.Fprintln(t, "  POD\tNODE\tREADY\tGENERATION\tSHARE\tVERSION\tSIDECAR")
	}
	for _, m := range p.Members {
		ready, generation := "no", "-"
		if m.Ready {
			ready = "yes"
		}
		if m.Generation > 0 {
			generation = fmt.Sprint(m.Generation)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, dash(m.Node), ready, generation, dash(m.Share), dash(m.Version), m.Sidecar)
	}
	return t.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
