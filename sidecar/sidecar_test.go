// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/record"
)

func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
	})
}

func TestALimitAdmitsItsBurstAndDeniesTheRest(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("all", 1, 3)}, fill: true})
	c := client(t)
	for i := range 3 {
		if r, body := get(t, c, p.url("/hello?a=b")); r.StatusCode != http.StatusOK || body != "GET /hello?a=b" {
			t.Fatalf("request %d: %d %q, want it forwarded", i, r.StatusCode, body)
		}
	}
	r, body := get(t, c, p.url("/hello"))
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "3600" {
		t.Errorf("got %d with Retry-After %q, want 429 and 3600", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, `"violated-policies":["checkout/all"]`) {
		t.Errorf("body does not name the limit: %s", body)
	}
	s := p.state()
	if !s.Ready || !s.Quota.Connected || s.Quota.Epoch != 1 || s.SnapshotVersion != "v1" || s.Pod != "shop/checkout-1" {
		t.Errorf("state is %+v", s)
	}
	if off := time.Since(s.Time); off < 0 || off > time.Minute || s.Quota.Since.IsZero() || s.Quota.Heard.IsZero() {
		t.Errorf("the pod says that it is %v, connected since %v, heard at %v", s.Time, s.Quota.Since, s.Quota.Heard)
	}
	if l := s.Policies[0].Limits[0]; l.Allowed != 3 || l.Denied != 1 || l.ShareFraction != 1 || *l.Balance >= 1 {
		t.Errorf("limit's state is %+v", l)
	}
}

func TestReadinessWaitsForASnapshotAndAShareOfEachLimit(t *testing.T) {
	p := startPod(t, echo(), podOptions{bare: true})
	eventually(t, "the process to be up", func() bool { return p.status(p.admin, quotav1.PathStarted) == http.StatusOK })
	if body := p.text(p.admin, quotav1.PathReady); !strings.Contains(body, "no snapshot yet") {
		t.Errorf("readiness says %q", body)
	}
	if r, _ := get(t, client(t), p.url("/")); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a request without any snapshot got %d, want 503: it is no denial", r.StatusCode)
	}
	a, b := perSecond("a", 1, 1), perSecond("b", 1, 1)
	p.leader.Assign(snapshot("v1", a, b), shares(true, a)...)
	eventually(t, "the snapshot", func() bool { return p.leader.Acked("v1") })
	if body := p.text(p.admin, quotav1.PathReady); !strings.Contains(body, "no share yet of limit checkout/b") {
		t.Errorf("readiness says %q", body)
	}
	p.leader.Assign(snapshot("v1", a, b), shares(true, a, b)...)
	eventually(t, "readiness", func() bool { return p.status(p.admin, quotav1.PathReady) == http.StatusOK })
}

func TestAChangedPolicyIsInForceOnceAcknowledged(t *testing.T) {
	old := perHour("all", 1, 1)
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{old}, fill: true})
	c := client(t)
	_, _ = get(t, c, p.url("/"))
	narrow := perHour("all", 1, 1)
	narrow.Matches = []*quotav1.Match{{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: "/v1"}}}
	p.leader.Assign(snapshot("v2", narrow), shares(false, narrow)...)
	eventually(t, "the acknowledgement", func() bool { return p.leader.Acked("v2") })
	if r, _ := get(t, c, p.url("/free")); r.StatusCode != http.StatusOK {
		t.Errorf("a path that the policy no longer names got %d", r.StatusCode)
	}
	if r, _ := get(t, c, p.url("/v1/x")); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %d, want the spent bucket to have survived the edit", r.StatusCode)
	}
}

func TestChecksDecideLikeTheProxy(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("each", 1, 2, header("x-api-key"))}, fill: true})
	check := func(body string) (int, admin.CheckResponse) {
		t.Helper()
		r, err := client(t).Post("http://"+p.local+quotav1.PathCheck, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		var out admin.CheckResponse
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, out
	}
	ask := `{"path":"/v1","headers":{"x-api-key":["gold-7f3"]},"peer":"192.0.2.1"}`
	if status, d := check(ask); status != http.StatusOK || !d.Allowed || d.Tightest.Remaining < 1 || d.Tightest.Limit != "checkout/each" {
		t.Errorf("%d, %+v", status, d)
	}
	r, err := http.NewRequest(http.MethodGet, p.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-KEY", "gold-7f3")
	response, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Fatalf("got %d", response.StatusCode)
	}
	if _, d := check(ask); d.Allowed || len(d.Limits) != 1 || d.RetryAfterSeconds <= 0 {
		t.Errorf("third request of the key: %+v", d)
	}
	for _, bad := range []string{`{"path":"v1"}`, `{"path":"/","peer":"x"}`, `{"unknown":1}`, `{`} {
		if status, _ := check(bad); status != http.StatusBadRequest {
			t.Errorf("%s got %d, want 400", bad, status)
		}
	}
}

func TestMetricsCountAndHoldNoKeys(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("each", 1, 1, header("x-api-key")), perHour("all", 360, 10)}, fill: true,
		flags: []string{"--keys", "1000"}}) // few enough to be counted, not estimated
	for range 2 {
		r, err := http.NewRequest(http.MethodGet, p.url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "gold-7f3")
		response, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	metrics := p.text(p.admin, quotav1.PathMetrics)
	for _, want := range []string{
		`headgate_requests_total{decision="allowed",limit="each",policy="checkout"} 1`,
		`headgate_requests_total{decision="denied",limit="each",policy="checkout"} 1`,
		`headgate_requests_total{decision="allowed",limit="all",policy="checkout"} 1`,
		`headgate_share_tokens_per_second{limit="all",policy="checkout"} 0.1`,
		`headgate_balance_tokens{limit="all",policy="checkout"} 9`,
		`headgate_keys{limit="each",policy="checkout"} 1`,
		`headgate_quota_connected 1`,
		`headgate_snapshot_generation{policy="checkout"} 7`,
		`headgate_decision_seconds_count 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for where, text := range map[string]string{"metrics": metrics, "state": p.text(p.local, quotav1.PathState), "logs": p.logs()} {
		if strings.Contains(text, "gold-7f3") {
			t.Errorf("%s hold the value of a key", where)
		}
	}
}

func TestSharesStayInForceWithoutTheOperator(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("all", 1, 2)}, fill: true})
	p.operator.Stop()
	eventually(t, "the loss to be seen", func() bool { return !p.state().Quota.Connected })
	if status := p.status(p.admin, quotav1.PathReady); status != http.StatusOK {
		t.Errorf("readiness is %d without the operator, want 200: the share is still in hand", status)
	}
	want := []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}
	for i, status := range want {
		if r, _ := get(t, client(t), p.url("/")); r.StatusCode != status {
			t.Errorf("request %d got %d, want %d", i, r.StatusCode, status)
		}
	}
	if status := p.terminate(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestRecordsOfAKilledProcessSurvive(t *testing.T) {
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("each", 1, 2, header("x-api-key"))}, fill: true, record: true})
	before := record.Now()
	want := map[bool]int{}
	for range 5 {
		r, err := http.NewRequest(http.MethodGet, p.url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "gold-7f3")
		response, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		want[response.StatusCode == http.StatusOK]++
	}
	after := record.Now()
	if err := p.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	files, err := filepath.Glob(filepath.Join(p.record, "shop_checkout-1-*"+record.Extension))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, err := record.Parse(f)
	if err != nil || got.Torn {
		t.Fatalf("torn = %v, %v", got.Torn, err)
	}
	count := map[bool]int{}
	for _, d := range got.Decisions {
		count[d.Admitted]++
		if d.Time < before || d.Time > after || d.Limit != "uid/each/1" || d.Cost != 1 || d.Key != got.Decisions[0].Key {
			t.Errorf("decision %+v, asked between %d and %d", d, before, after)
		}
	}
	if count[true] != 2 || count[true] != want[true] || count[false] != want[false] {
		t.Errorf("recorded %v, clients saw %v", count, want)
	}
	if len(got.Shares) != 1 || got.Shares[0].Units != quotav1.Whole {
		t.Errorf("shares %+v", got.Shares)
	}
}

func TestClientsOfBothAddressFamiliesAreServed(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	_ = probe.Close()
	p := startPod(t, echo(), podOptions{limits: []*quotav1.Limit{perHour("each", 1, 1, &quotav1.KeyPart{
		Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{}}})}, fill: true})
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if r, _ := get(t, client(t), fmt.Sprintf("http://%s:%d/", host, p.port)); r.StatusCode != want {
				t.Errorf("request %d over %s got %d, want %d", i, host, r.StatusCode, want)
			}
		}
	}
}

func TestLimitsOfHeadsAndConnectionsAreThoseOfTheFlags(t *testing.T) {
	p := startPod(t, echo(), podOptions{flags: []string{"--max-head", "2048", "--max-fields", "20", "--idle-timeout", "100ms"}})
	for want, extra := range map[string]string{
		"HTTP/1.1 431": "X: " + strings.Repeat("x", 2048) + "\r\n",
		"HTTP/1.1 200": strings.Repeat("X: y\r\n", 10),
	} {
		conn := dial(t, p.port)
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", extra)
		all, err := io.ReadAll(conn) // an idle connection ends, too
		if err != nil || !strings.HasPrefix(string(all), want) {
			t.Errorf("got %q, %v, want %s", all, err, want)
		}
	}
	conn := dial(t, p.port)
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", strings.Repeat("X: y\r\n", 20))
	if all, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 431") {
		t.Errorf("got %q, %v, want 431 for one line too many", all, err)
	}
}

func TestKeepAliveConnectionsAreKept(t *testing.T) {
	p := startPod(t, echo(), podOptions{})
	conn := dial(t, p.port)
	in := bufio.NewReader(conn)
	for i := range 3 {
		_, _ = fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		if r.Close || body.String() != fmt.Sprint("GET /", i) {
			t.Errorf("close = %v, body %q", r.Close, body.String())
		}
	}
}
