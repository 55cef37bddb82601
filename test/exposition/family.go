// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Family is a metric.
type Family struct {
	Name, Type, Help string
	Labels           []string // by name
}

// Families reads what a scrape answers, by name.
func Families(text string) ([]Family, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("exposition: %w", err)
	}
	var out []Family
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		f := parsed[name]
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		out = append(out, Family{Name: name, Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp(), Labels: slices.Sorted(maps.Keys(labels))})
	}
	return out, nil
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: .*, variableLabels: \{(.*)\}\}$`)

// Libraries are the metrics that the operator's libraries declare, used or not. Their types are not known.
func Libraries() []Family {
	all := metrics.Registry.(prometheus.Collector)
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		all.Describe(ch)
	}()
	var out []Family
	for d := range ch {
		if m := description.FindStringSubmatch(d.String()); m != nil {
			out = append(out, Family{Name: m[1], Labels: strings.FieldsFunc(m[2], func(c rune) bool { return c == ',' || c == ' ' })})
		}
	}
	return out
}
