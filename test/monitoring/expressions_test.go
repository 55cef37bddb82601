// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/headgate/headgate/test/exposition"
)

// scraped are the labels that whoever scrapes adds.
var scraped = []string{"namespace", "pod", "container", "instance", "job", "node"}

// known are the labels of each series that exists, by name, those of the scrape among them.
func known(t *testing.T) map[string][]string {
	t.Helper()
	all := exposition.Libraries()
	for _, expose := range []func() (string, error){exposition.Sidecar, func() (string, error) { return exposition.Operator(true) }} {
		text, err := expose()
		if err != nil {
			t.Fatal(err)
		}
		families, err := exposition.Families(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, families...)
	}
	out := map[string][]string{"up": scraped}
	for _, f := range all {
		names := []string{f.Name}
		if f.Type == "histogram" || f.Type == "" { // of the libraries' only the name is known
			names = append(names, f.Name+"_bucket", f.Name+"_sum", f.Name+"_count")
		}
		for _, name := range names {
			out[name] = slices.Concat(out[name], f.Labels, scraped)
			if strings.HasSuffix(name, "_bucket") {
				out[name] = append(out[name], "le")
			}
		}
	}
	return out
}

// check holds an expression to the series that exist, and returns the labels of those that it reads.
func check(t *testing.T, series map[string][]string, where, text string) []string {
	t.Helper()
	expr, err := parser.ParseExpr(strings.ReplaceAll(text, "$__rate_interval", "5m"))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	all := labelsOf(t, series, where, expr)
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var wanted []string
		var of parser.Expr
		switch n := n.(type) {
		case *parser.AggregateExpr:
			wanted, of = n.Grouping, n.Expr
		case *parser.BinaryExpr:
			if n.VectorMatching == nil {
				return nil
			}
			for _, side := range []parser.Expr{n.LHS, n.RHS} {
				missing(t, where, n.VectorMatching.MatchingLabels, labelsOf(t, series, where, side))
			}
			return nil
		default:
			return nil
		}
		missing(t, where, wanted, labelsOf(t, series, where, of))
		return nil
	})
	return all
}

func missing(t *testing.T, where string, wanted, there []string) {
	t.Helper()
	for _, l := range wanted {
		if !slices.Contains(there, l) {
			t.Errorf("%s: groups by label %q, which nothing there has", where, l)
		}
	}
}

// labelsOf are the labels of all series that an expression reads.
func labelsOf(t *testing.T, series map[string][]string, where string, expr parser.Expr) []string {
	t.Helper()
	labels := map[string]bool{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		there, ok := series[v.Name]
		if !ok {
			t.Errorf("%s: no metric is named %q", where, v.Name)
			return nil
		}
		for _, l := range there {
			labels[l] = true
		}
		for _, m := range v.LabelMatchers {
			if m.Name != "__name__" && !slices.Contains(there, m.Name) {
				t.Errorf("%s: %s has no label %q", where, v.Name, m.Name)
			}
		}
		return nil
	})
	return slices.Collect(maps.Keys(labels))
}

func TestAlertsReadMetricsThatExist(t *testing.T) {
	series := known(t)
	for _, a := range alerts(t) {
		check(t, series, a.Alert, a.Expr)
	}
}

// dashboard is the part of Grafana's that refers to metrics.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID          int
		Title, Type string
		Targets     []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

var (
	legend      = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

func TestDashboardsReadMetricsThatExist(t *testing.T) {
	series := known(t)
	files, err := filepath.Glob(dashboards + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var d dashboard
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			if d.UID+".json" != filepath.Base(file) {
				t.Errorf("uid %q: a link to a dashboard should outlive it", d.UID)
			}
			seen, expressions := map[int]bool{}, 0
			for _, p := range d.Panels {
				if seen[p.ID] {
					t.Errorf("panel %q: id %d is used twice", p.Title, p.ID)
				}
				seen[p.ID] = true
				for _, target := range p.Targets {
					expressions++
					there := check(t, series, p.Title, target.Expr)
					for _, m := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
						if !slices.Contains(there, m[1]) {
							t.Errorf("%s: the legend names label %q, which nothing there has", p.Title, m[1])
						}
					}
				}
			}
			if expressions == 0 {
				t.Error("it shows nothing")
			}
			for _, v := range d.Templating.List {
				if v.Type != "query" {
					continue
				}
				var q struct{ Query string }
				if err := json.Unmarshal(v.Query, &q); err != nil {
					t.Fatal(err)
				}
				m := labelValues.FindStringSubmatch(q.Query)
				if m == nil {
					t.Errorf("variable %s: %q is not understood", v.Name, q.Query)
					continue
				}
				if there := check(t, series, "variable "+v.Name, m[1]); !slices.Contains(there, m[2]) {
					t.Errorf("variable %s: %s has no label %q", v.Name, m[1], m[2])
				}
			}
		})
	}
}
