//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/testbed"
)

// ask is one kind of request to a sample's app.
type ask struct {
	method, path string
	header       []string // names and values
	grpc         string   // a method to call instead
}

// expect sends a request up to so many times, until it is answered as wanted. The one before it shows that the wanted answer
// does not come for another reason.
type expect struct {
	ask
	status int
	within int
	holds  string // in the body or in a header, where it is told
	during *ask   // goes on meanwhile, as often as there may be under way
	under  int
}

const denied = http.StatusTooManyRequests

func get(path string, header ...string) ask  { return ask{"GET", path, header, ""} }
func post(path string, header ...string) ask { return ask{"POST", path, header, ""} }

func jwt(claims string) string {
	enc := base64.RawURLEncoding
	return "Bearer " + enc.EncodeToString([]byte(`{}`)) + "." + enc.EncodeToString([]byte(claims)) + ".c2ln"
}

// samples says what each file of config/samples is about: requests that it admits, and requests that it denies.
var samples = map[string][]expect{
	"checkout": {
		{ask: get("/", "X-API-Key", "a"), status: 200, within: 1},
		{ask: get("/", "X-API-Key", "a"), status: denied, within: 200, holds: "checkout/per-api-key"},
		{ask: get("/", "X-API-Key", "b"), status: 200, within: 1},
	},
	"per-api-key": {
		{ask: get("/v1/x", "X-API-Key", "a"), status: 200, within: 1},
		{ask: get("/v1/x", "x-api-key", "a"), status: denied, within: 200},
		{ask: get("/v1/x", "X-API-Key", "gold-7f3"), status: 200, within: 1},
		{ask: get("/v1/../v1//x"), status: denied, within: 1, holds: "counts by a key that the request lacks"},
		{ask: get("/v2/x"), status: 200, within: 1},
	},
	"per-ip-behind-cdn": {
		{ask: get("/", "CF-Connecting-IP", "203.0.113.7"), status: 200, within: 1},
		{ask: get("/", "CF-Connecting-IP", "203.0.113.7"), status: denied, within: 200},
		{ask: get("/assets/logo.svg", "CF-Connecting-IP", "203.0.113.7"), status: 200, within: 1},
		{ask: get("/", "CF-Connecting-IP", "2001:db8::1"), status: 200, within: 1},
	},
	"graphql-cost": {
		{ask: post("/graphql", "X-Client-Id", "a", "X-Query-Cost", "300"), status: 200, within: 1},
		{ask: post("/graphql", "X-Client-Id", "a", "X-Query-Cost", "300"), status: denied, within: 4},
		{ask: post("/graphql", "X-Client-Id", "b", "X-Query-Cost", "9999999"), status: 200, within: 1},
		{ask: get("/graphql", "X-Client-Id", "a"), status: 200, within: 1},
	},
	"grpc-method": {
		{ask: ask{grpc: "/shop.v1.Orders/Create"}, status: int(codes.Unimplemented), within: 1},
		{ask: ask{grpc: "/shop.v1.Orders/Create"}, status: int(codes.ResourceExhausted), within: 100},
		{ask: ask{grpc: "/shop.v1.Orders/List"}, status: int(codes.Unimplemented), within: 1},
	},
	"llm-tokens-per-team": {
		{ask: post("/v1/chat?tokens=10", "Authorization", jwt(`{"team":"a"}`)), status: 200, within: 1, holds: `"llm-tokens/tokens-per-team"`},
		{ask: post("/v1/chat?tokens=70000", "Authorization", jwt(`{"team":"a"}`)), status: denied, within: 4},
		{ask: post("/v1/chat?tokens=10", "Authorization", jwt(`{"team":"b"}`)), status: 200, within: 1},
		{ask: post("/v1/chat"), status: denied, within: 1},
	},
	"login-brute-force": {
		{ask: post("/login", "X-Forwarded-For", "198.51.100.1, 203.0.113.7"), status: 200, within: 1},
		{ask: post("/login", "X-Forwarded-For", "198.51.100.2, 203.0.113.7"), status: denied, within: 5, holds: `{"error": "too many attempts", "retryAfter": `},
		{ask: post("/login", "X-Forwarded-For", "203.0.113.8"), status: 200, within: 1},
	},
	"websocket-handshakes": {
		// The app is no server of WebSockets and answers as ever: it was asked.
		{ask: get("/", "Upgrade", "WebSocket", "Connection", "Upgrade", "Cookie", "session=a"), status: 200, within: 1},
		{ask: get("/", "Upgrade", "WebSocket", "Connection", "Upgrade", "Cookie", "session=a"), status: denied, within: 50},
		{ask: get("/", "Cookie", "session=a"), status: 200, within: 1},
	},
	"tenant-tiers": {
		{ask: get("/tenants/acme/x"), status: 200, within: 1},
		{ask: get("/tenants/acme/x"), status: denied, within: 100},
		{ask: get("/tenants/acme/x", "X-Plan", "enterprise"), status: 200, within: 1},
		{ask: get("/tenants/umbrella/x"), status: 200, within: 1},
	},
	"shadow-roll-out": {
		{ask: get("/"), status: 200, within: 1},
		{ask: get("/"), status: denied, within: 200, holds: "shadow/enforced"},
	},
	"shape-a-partner": {
		// One after the other, each is held for a tenth of a second; of thirty at once the last would wait for too long.
		{ask: get("/", "X-Partner", "acme"), status: 200, within: 1},
		{ask: get("/", "X-Partner", "acme"), status: 200, within: 1},
		{ask: get("/", "X-Partner", "acme"), status: denied, within: 100, during: &ask{"GET", "/", []string{"X-Partner", "acme"}, ""}, under: 30},
		{ask: get("/", "X-Partner", "other"), status: 200, within: 1},
	},
	"concurrency-guard": {
		{ask: get("/slow?ms=1"), status: 200, within: 1},
		{ask: get("/slow?ms=1"), status: denied, within: 100, during: &ask{"GET", "/slow?ms=3000", nil, ""}, under: 4},
		{ask: get("/"), status: 200, within: 1},
	},
	"whole-service-ceiling": {
		{ask: get("/"), status: 200, within: 1},
		{ask: get("/"), status: denied, within: 1000},
		{ask: ask{method: "OPTIONS", path: "/"}, status: 200, within: 1},
	},
	"maintenance-deny-all": {
		{ask: get("/", "X-Maintenance-Pass", "on"), status: 200, within: 1},
		{ask: get("/"), status: http.StatusServiceUnavailable, within: 1, holds: "Back at 06:00 UTC."},
		{ask: get("/healthz"), status: 200, within: 1},
	},
}

func everySampleDoesWhatItSays(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	// The sidecar stays while samples come and go.
	base := s.policy("base", app.Name, perSecond("base", 1_000_000, 1_000_000))
	s.apply(base)
	s.enforced(base, 1)
	s.settled(app, 1)
	address, err := suite.Address(s.ctx, app)
	s.must(err, "service")
	s.must(suite.WaitReachable(s.ctx, soon, address), "service")

	files, err := filepath.Glob(filepath.Join(suite.chart.Repository, "config", "samples", "*.yaml"))
	if err != nil || len(files) < 12 {
		s.Fatalf("%d samples: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		p := s.sample(file, app)
		s.apply(p)
		s.enforced(p, 1)
		steps := samples[name]
		if len(steps) < 2 {
			s.Errorf("sample %s: nothing says what it admits and denies", name)
		}
		for i := range steps {
			if err := steps[i].try(s.ctx, address); err != nil {
				s.Errorf("sample %s, step %d: %v", name, i, err)
			}
		}
		s.must(suite.Delete(s.ctx, p), "policy")
		s.must(testbed.Wait(s.ctx, soon, "the sample to be forgotten", func(ctx context.Context) error {
			return (&expect{ask: ask{method: "GET", path: "/"}, status: 200, within: 1}).try(ctx, address)
		}), name)
	}
	s.judge()
}

// The label of a namespace is the switch for the worst day: everything is counted and nothing denied, at once, without an edit of
// any policy.
func namespaceInShadowModeDeniesNothing(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	policy := s.policy("all", app.Name, v1alpha1.Limit{Name: "all", Rate: v1alpha1.Rate{Requests: 2, Per: "1h"}, Strategy: v1alpha1.EqualShare})
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)
	address, err := suite.Address(s.ctx, app)
	s.must(err, "service")
	s.must(suite.WaitReachable(s.ctx, soon, address), "service")
	over := expect{ask: get("/"), status: denied, within: 10}
	s.must(over.try(s.ctx, address), "before the label")
	label := func(mode any) {
		s.must(suite.Patch(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.LabelMode, mode))), "label")
	}
	label(`"Shadow"`)
	admitted := expect{ask: get("/"), status: 200, within: 1}
	s.must(testbed.Wait(s.ctx, soon, "the pods to deny nothing", func(ctx context.Context) error {
		for range 5 {
			if err := admitted.try(ctx, address); err != nil {
				return err
			}
		}
		return nil
	}), "with the label")
	label("null")
	s.must(testbed.Wait(s.ctx, soon, "the pods to deny again", func(ctx context.Context) error { return over.try(ctx, address) }), "without the label")
}

// sample reads a policy and lets it target the app.
func (s *space) sample(file string, app *testbed.App) *v1alpha1.RateLimitPolicy {
	s.Helper()
	raw, err := os.ReadFile(file)
	s.must(err, "sample")
	p := &v1alpha1.RateLimitPolicy{}
	s.must(yaml.UnmarshalStrict(raw, p), file)
	p.Namespace = s.name
	p.Spec.TargetRefs = []v1alpha1.TargetRef{{Group: "apps", Kind: "Deployment", Name: app.Name}}
	return p
}

func (e *expect) try(ctx context.Context, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var going sync.WaitGroup
	defer going.Wait()
	for range e.under {
		going.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = e.during.send(ctx, address)
			}
		})
	}
	if e.under > 0 {
		time.Sleep(300 * time.Millisecond) // until they are under way; if they are not, the denial fails to come
	}
	var status int
	var told string
	for range e.within {
		var err error
		if status, told, err = e.send(ctx, address); err != nil {
			return err
		}
		if status == e.status {
			if !strings.Contains(told, e.holds) {
				return fmt.Errorf("answered %d without %q:\n%s", status, e.holds, told)
			}
			cancel()
			return nil
		}
	}
	return fmt.Errorf("%v was answered %d after %d requests, want %d:\n%s", e.ask, status, e.within, e.status, told)
}

// send sends one request on a connection of its own and returns the status and all that was told.
func (a *ask) send(ctx context.Context, address string) (int, string, error) {
	if a.grpc != "" {
		conn, err := grpc.NewClient(strings.TrimPrefix(address, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = conn.Close() }()
		err = conn.Invoke(ctx, a.grpc, &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{}, grpc.WaitForReady(true))
		return int(status.Code(err)), fmt.Sprint(err), nil
	}
	request, err := http.NewRequestWithContext(ctx, a.method, address+a.path, nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(a.header); i += 2 {
		request.Header.Set(a.header[i], a.header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	var told bytes.Buffer
	_ = response.Header.Write(&told)
	_, err = io.Copy(&told, response.Body)
	return response.StatusCode, told.String(), err
}
