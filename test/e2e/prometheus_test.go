//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// block is the first block of YAML below a heading of a page.
func (s *space) block(page, heading string) []byte {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join(suite.chart.Repository, "docs", page))
	s.must(err, "page")
	_, below, ok := strings.Cut(string(raw), "\n## "+heading+"\n")
	_, code, ok2 := strings.Cut(below, "```yaml\n")
	code, _, ok3 := strings.Cut(code, "\n```")
	if !ok || !ok2 || !ok3 {
		s.Fatalf("%s has no YAML below %q", page, heading)
	}
	return []byte(code)
}

// prometheus starts Debian's Prometheus by the configuration that the documentation has, with the alerts, and the rights that the
// chart's ClusterRole gives.
func (s *space) prometheus() *testbed.Prometheus {
	s.Helper()
	if !suite.Local {
		s.skip("the pods of another cluster are out of this machine's reach")
	}
	out, err := exec.Command(filepath.Join(suite.chart.Repository, "hack", "tools", "install-prometheus.sh")).CombinedOutput()
	s.must(err, "prometheus: "+string(out))
	dir := s.TempDir()
	var secret corev1.Secret
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: testbed.Namespace, Name: testbed.Operator + "-cert"}, &secret), "certificate")
	s.must(os.WriteFile(filepath.Join(dir, "ca.crt"), secret.Data["ca.crt"], 0o600), "CA")
	s.must(os.WriteFile(filepath.Join(dir, "token"), []byte(s.token("prometheus", testbed.Release+"-metrics-reader")), 0o600), "token")

	// Debian's cannot ask Kubernetes for its targets, so it is told what it would find.
	pods, endpoints := filepath.Join(dir, "pods.json"), filepath.Join(dir, "endpoints.json")
	s.must(suite.Discover(s.ctx, pods, endpoints), "targets")
	var config map[string]any
	s.must(yaml.Unmarshal(s.block("autoscaling.md", "Prometheus"), &config), "configuration")
	for _, job := range config["scrape_configs"].([]any) {
		job := job.(map[string]any)
		file := map[string]string{"pod": pods, "endpointslice": endpoints}[job["kubernetes_sd_configs"].([]any)[0].(map[string]any)["role"].(string)]
		job["file_sd_configs"] = []any{map[string]any{"files": []string{file}, "refresh_interval": "1s"}}
		delete(job, "kubernetes_sd_configs")
		if job["scheme"] == "https" {
			job["authorization"] = map[string]any{"credentials_file": filepath.Join(dir, "token")}
			job["tls_config"].(map[string]any)["ca_file"] = filepath.Join(dir, "ca.crt")
		}
	}
	config["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	config["rule_files"] = []string{filepath.Join(suite.chart.Repository, "charts", "headgate", "alerts", "headgate.yaml")}
	raw, err := yaml.Marshal(config)
	s.must(err, "configuration")
	p, err := testbed.StartPrometheus(s.ctx, dir, raw)
	s.must(err, "prometheus")
	s.Cleanup(p.Stop)
	return p
}

// token is one of a new ServiceAccount, bound to a ClusterRole if one is named.
func (s *space) token(name, role string) string {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
	s.must(suite.Create(s.ctx, account), "service account")
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.name, Name: name}},
		}
		s.must(suite.Create(s.ctx, binding), "binding")
		s.Cleanup(func() { _ = suite.Delete(context.Background(), binding) })
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	s.must(suite.SubResource("token").Create(s.ctx, account, request), "token")
	return request.Status.Token
}

// prometheusSeesWhatClientsSent: what a real Prometheus counts is what clients sent, every panel of the dashboards shows
// something, the alerts load, and nobody reads the operator's metrics without the right to.
func prometheusSeesWhatClientsSent(t *testing.T) {
	s := newSpace(t)
	app := s.running("app", 2)
	shadow := perSecond("shadow", 5, 5)
	shadow.Mode = v1alpha1.ModeShadow
	flight := v1alpha1.Limit{Name: "flight", Algorithm: v1alpha1.Concurrency, MaxInFlight: new(int64(100))}
	policy := s.policy("all", app.Name, equally(perSecond("all", 30, 30)), perKey(lent(perSecond("per-key", 1000, 1000))), shadow, flight)
	s.apply(policy)
	s.enforced(policy, 2)
	s.settled(app, 2)
	s.must(suite.Create(s.ctx, s.policy("nobody", "missing", perSecond("all", 1, 1))), "policy")
	p := s.prometheus()
	waitFor(s, soon, "both replicas and both pods to be scraped", func(ctx context.Context) error {
		for expr, want := range map[string]float64{
			`count(up{job="headgate-operator"} == 1)`:                                                           2,
			`sum(headgate_leading)`:                                                                             1,
			fmt.Sprintf(`count(up{namespace=%q} == 1)`, s.name):                                                 2,
			fmt.Sprintf(`sum(headgate_quota_connected{namespace=%q})`, s.name):                                  2,
			fmt.Sprintf(`headgate_pods{namespace=%q,policy="all",limit="all"}`, s.name):                         2,
			fmt.Sprintf(`count(headgate_requests_total{namespace=%q})`, s.name):                                 16, // four limits, two answers, two pods
			fmt.Sprintf(`headgate_policy_condition{namespace=%q,policy="nobody",condition="Accepted"}`, s.name): 0,
		} {
			if got, err := p.Number(ctx, expr); err != nil || got != want {
				return errors.Join(err, fmt.Errorf("%s is %v, want %v", expr, got, want))
			}
		}
		return nil
	})

	run := s.load(app, load.Client{Rate: 60, Connections: load.New, Key: secretKey + "a"}, load.Client{Rate: 60, Connections: load.Renewed, Key: secretKey + "b"})
	s.until(run, 120*25) // longer than the window of what is offered
	offered := fmt.Sprintf(`headgate_offered_requests_per_second{namespace=%q,policy="all",limit="all",workload="app"}`, s.name)
	got, err := p.Number(s.ctx, offered)
	s.must(err, "offered")
	s.Logf("offered %.1f per second; clients send 120, of which 30 are admitted", got)
	if got < 80 || got > 140 {
		s.Errorf("offered is %v per second, clients send 120", got)
	}
	s.panels(p)
	s.none(run.Stop())
	sent := run.Count()
	waitFor(s, soon, "what is counted to be what was sent", func(ctx context.Context) error {
		for _, limit := range []string{"all", "per-key", "flight", "shadow"} {
			want := map[string]float64{"allowed": float64(sent.Admitted)}
			if limit == "all" {
				want["denied"] = float64(sent.Denied)
			}
			for decision, n := range want {
				if limit == "shadow" {
					decision = ".*" // it lets everything through that the others admit
				}
				expr := fmt.Sprintf(`sum(headgate_requests_total{namespace=%q,policy="all",limit=%q,decision=~%q})`, s.name, limit, decision)
				if got, err := p.Number(ctx, expr); err != nil || got != n {
					return errors.Join(err, fmt.Errorf("%s is %v, clients saw %v", expr, got, n))
				}
			}
		}
		return nil
	})
	s.Logf("Prometheus counts %d admitted and %d denied, as the clients do", sent.Admitted, sent.Denied)
	s.rulesAreLoaded(p)
	s.nothingLeaks(p)

	s.scale(app, 0)
	waitFor(s, rollout, "nothing to be offered", func(ctx context.Context) error {
		got, err := p.Number(ctx, offered)
		if err != nil || got != 0 {
			return errors.Join(err, fmt.Errorf("it is %v", got))
		}
		return nil
	})
	s.onlyReadersRead(p)
	s.judge(run)
}

// silent are panels that have nothing to show while nothing is wrong.
var silent = map[string]bool{}

// panels evaluates every expression of the dashboards.
func (s *space) panels(p *testbed.Prometheus) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(suite.chart.Repository, "charts", "headgate", "dashboards", "*.json"))
	s.must(err, "dashboards")
	shown := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		s.must(err, "dashboard")
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		s.must(json.Unmarshal(raw, &d), "dashboard")
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expr := strings.NewReplacer("$__rate_interval", "20s", "$namespace", s.name, "$policy", ".*", "$limit", ".*").Replace(target.Expr)
				samples, err := p.Query(s.ctx, expr)
				s.must(err, panel.Title)
				if len(samples) == 0 && !silent[panel.Title] {
					s.Errorf("panel %q shows nothing: %s", panel.Title, expr)
				}
				shown++
			}
		}
	}
	s.Logf("%d expressions of the dashboards were evaluated", shown)
}

// secretKey begins the keys of the requests: nobody may find them in a log or a metric.
const secretKey = "key-that-nobody-may-see-"

// nothingLeaks looks for keys of requests and tokens in the logs, whose lines it wants to be JSON, and in what is scraped.
func (s *space) nothingLeaks(p *testbed.Prometheus) {
	s.Helper()
	lines := 0
	for _, of := range [][]string{
		{"-n", s.name, "-l", "app.kubernetes.io/name=app", "-c", "headgate"},
		{"-n", testbed.Namespace, "-l", "app.kubernetes.io/component=operator"},
	} {
		cmd := exec.CommandContext(s.ctx, filepath.Join(suite.Binaries(), "kubectl"), append([]string{"logs", "--tail=5000"}, of...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
		out, err := cmd.Output()
		s.must(err, "logs")
		for line := range strings.Lines(string(out)) {
			lines++
			var keys struct{ Time, Level, Msg string }
			if err := json.Unmarshal([]byte(line), &keys); err != nil || keys.Time == "" || keys.Level == "" || keys.Msg == "" {
				s.Errorf("a line of a log is no JSON with time, level and msg: %s", line)
			}
			if strings.Contains(line, secretKey) || strings.Contains(line, "eyJhbGciOi") {
				s.Errorf("a key or a token is in a log: %s", line)
			}
		}
	}
	if lines == 0 {
		s.Error("nothing was logged, so nothing was looked at")
	}
	s.Logf("%d lines of logs are JSON and name no key", lines)
	var labels struct{ Data []string }
	s.must(p.Get(s.ctx, "/api/v1/labels", &labels), "labels")
	for _, l := range labels.Data {
		var values struct{ Data []string }
		s.must(p.Get(s.ctx, "/api/v1/label/"+l+"/values", &values), "values")
		for _, v := range values.Data {
			if strings.Contains(v, secretKey) {
				s.Errorf("label %s has value %s", l, v)
			}
		}
	}
}

func (s *space) rulesAreLoaded(p *testbed.Prometheus) {
	s.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	s.must(p.Get(s.ctx, "/api/v1/rules", &answer), "rules")
	loaded := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			loaded++
			if r.Health != "ok" {
				s.Errorf("alert %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if loaded < 15 {
		s.Errorf("%d alerts are loaded", loaded)
	}
	s.Logf("%d alerts are evaluated without an error", loaded)
}

// onlyReadersRead asks the operator itself.
func (s *space) onlyReadersRead(p *testbed.Prometheus) {
	s.Helper()
	var targets struct {
		Data struct {
			Active []struct {
				URL  string `json:"scrapeUrl"`
				Pool string `json:"scrapePool"`
			} `json:"activeTargets"`
		}
	}
	s.must(p.Get(s.ctx, "/api/v1/targets?state=active", &targets), "targets")
	address := ""
	for _, t := range targets.Data.Active {
		if t.Pool == "headgate-operator" {
			address = strings.TrimSuffix(t.URL, "/metrics")
		}
	}
	// The certificate is looked at by Prometheus.
	asker := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // only who is refused is looked at
	for _, c := range []struct {
		who, token, path string
		want             int
	}{
		{"nobody", "", "/metrics", http.StatusUnauthorized},
		{"somebody", s.token("somebody", ""), "/metrics", http.StatusForbidden},
		{"a reader of metrics", s.token("reader", testbed.Release+"-metrics-reader"), "/metrics", http.StatusOK},
		{"an administrator, while profiles are off", s.token("administrator", "cluster-admin"), "/debug/pprof/heap", http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, address+c.path, nil)
		s.must(err, "request")
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := asker.Do(req)
		s.must(err, c.who)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			s.Errorf("%s gets %d for %s, want %d", c.who, resp.StatusCode, c.path, c.want)
		}
	}
}
