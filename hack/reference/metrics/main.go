// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metrics writes the reference of metrics from the programs' own registries.
//
//	go run ./hack/reference/metrics PAGE
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/headgate/headgate/test/exposition"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: metrics PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(page string) error {
	operator, err := exposition.Operator(false)
	if err != nil {
		return err
	}
	sidecar, err := exposition.Sidecar()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(introduction)
	for _, part := range []struct{ title, text string }{{ofSidecar, sidecar}, {ofOperator, operator}} {
		families, err := exposition.Families(part.text)
		if err != nil {
			return err
		}
		b.WriteString(part.title)
		b.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
		for _, f := range families {
			if strings.HasPrefix(f.Name, "headgate_") {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), strings.ReplaceAll(f.Help, "|", `\|`))
			}
		}
	}
	return os.WriteFile(page, []byte(b.String()), 0o644)
}

const introduction = `# Metrics

Generated from the programs' registries by ` + "`make generate`" + `.

All that comes from policies is a label; no key of a request ever is, nor anything else that clients choose. ` + "`limit`" + ` is the
limit's name, or name/variant for a tier or an override. Counters begin at 0 when a process starts.
`

const ofSidecar = `
## Of the sidecar

On port 14190 (` + "`headgate-admin`" + `) of each pod at ` + "`/metrics`" + `, in plain text, for everybody who reaches the pod. The chart's PodMonitor
(` + "`metrics.podMonitor.enabled`" + `) adds the labels namespace and pod. Go's and the process's own metrics are there too.

`

const ofOperator = `
## Of the operator

On port 8443 of each replica at ` + "`/metrics`" + `, over TLS, for clients whose token may ` + "`get`" + ` that path: the chart's ClusterRole
` + "`headgate-metrics-reader`" + ` says so, ` + "`metrics.readers`" + ` binds it. The chart's ServiceMonitor (` + "`metrics.serviceMonitor.enabled`" + `) keeps
the label namespace as the operator says it: that of the policy. controller-runtime's, client-go's and Go's own metrics are there too.

`
