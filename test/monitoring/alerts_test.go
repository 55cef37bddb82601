// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func alerts(t *testing.T) (out []rule) {
	t.Helper()
	var r rules
	read(t, rulesFile, &r)
	for _, g := range r.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) == 0 {
		t.Fatal("no alerts")
	}
	return out
}

func TestAlertsFireForWhatTheyAreForAndForNothingElse(t *testing.T) {
	promtool(t, nil, "check", "rules", rulesFile)
	promtool(t, nil, "test", "rules", casesFile)

	var cases struct {
		Tests []struct {
			Cases []struct {
				Alert    string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	read(t, casesFile, &cases)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, group := range cases.Tests {
		for _, c := range group.Cases {
			if len(c.Expected) > 0 {
				fires[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: a case in which it fires: %v; one in which it does not: %v", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
}

func TestWhoeverIsAlertedFindsARunbook(t *testing.T) {
	const site = "https://github.com/headgate/headgate/blob/main/"
	known := map[string]bool{}
	for _, a := range alerts(t) {
		known[a.Alert+".md"] = true
		if want := site + "docs/runbooks/" + a.Alert + ".md"; a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		if a.For == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: for, summary and description must be there", a.Alert)
		}
		text, err := os.ReadFile(filepath.Join(runbooks, a.Alert+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"# " + a.Alert + "\n", "**Means.**", "**What users lose.**", "**Look"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("runbook of %s lacks %q", a.Alert, part)
			}
		}
		if !strings.Contains(strings.ToLower(string(text)), "mend") {
			t.Errorf("runbook of %s does not say how to mend it", a.Alert)
		}
	}
	pages, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if !known[p.Name()] {
			t.Errorf("runbook %s is of no alert", p.Name())
		}
	}
}
