// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/exposition"
	"github.com/headgate/headgate/test/testbed"
)

// unused are panels of metrics that controller-runtime shows once it has done something.
var unused = map[string]bool{"Time of the webhook": true, "Reconciliations": true}

// serve answers scrapes with what a program exposes, and returns host:port.
func serve(t *testing.T, expose func() (string, error)) string {
	t.Helper()
	text, err := expose()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestEveryPanelShowsSomethingInARealPrometheus(t *testing.T) {
	operator := serve(t, func() (string, error) { return exposition.Operator(true) })
	sidecar := serve(t, exposition.Sidecar)
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p, err := testbed.StartPrometheus(ctx, t.TempDir(), fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- {job_name: operator, honor_labels: true, static_configs: [{targets: [%q], labels: {namespace: headgate-system, pod: operator-0}}]}
- {job_name: sidecars, static_configs: [{targets: [%q], labels: {namespace: shop, pod: checkout-0}}]}
`, rules, operator, sidecar))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	err = testbed.Wait(ctx, time.Minute, "three scrapes of both", func(ctx context.Context) error {
		for _, expr := range []string{`sum(up)`, `min(count_over_time(up[1m])) - 1`} {
			if n, err := p.Number(ctx, expr); err != nil || n < 2 {
				return errors.Join(err, fmt.Errorf("%s is %v", expr, n))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dashboards + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expr := strings.NewReplacer("$__rate_interval", "1m", "$namespace", "shop", "$policy", ".*", "$limit", ".*").Replace(target.Expr)
				samples, err := p.Query(ctx, expr)
				if err != nil || len(samples) == 0 && !unused[panel.Title] {
					t.Errorf("%s: %d series, %v: %s", panel.Title, len(samples), err, expr)
				}
			}
		}
	}
}
