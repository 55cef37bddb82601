// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What is declared and not shown here would be missing in the reference.
func TestEveryMetricOfTheOperatorIsShown(t *testing.T) {
	text, err := Operator(false)
	if err != nil {
		t.Fatal(err)
	}
	families, err := Families(text)
	if err != nil {
		t.Fatal(err)
	}
	collectors, err := operator()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range collectors {
		ch := make(chan *prometheus.Desc, 64)
		c.Describe(ch)
		close(ch)
		for d := range ch {
			m := description.FindStringSubmatch(d.String())
			if m == nil || !slices.ContainsFunc(families, func(f Family) bool { return f.Name == m[1] }) {
				t.Errorf("not shown: %s", d)
			}
		}
	}
}

func TestNoMetricHasALabelWhoseValuesClientsChoose(t *testing.T) {
	bounded := []string{
		"policy", "limit", "decision", "namespace", "per", "workload", "workload_kind", "condition", "reason", "result", "certificate",
		"program", "version",
	}
	operator, err := Operator(false)
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := Sidecar()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{operator, sidecar} {
		families, err := Families(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, l := range f.Labels {
				if strings.HasPrefix(f.Name, "headgate_") && !slices.Contains(bounded, l) {
					t.Errorf("%s has label %q: is the number of its values bounded by what people wrote?", f.Name, l)
				}
			}
		}
	}
}
