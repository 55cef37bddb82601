// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"bufio"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wire is what a client reads from the connection.
func wire(t *testing.T, request string, answer func(http.ResponseWriter, *http.Request)) string {
	t.Helper()
	client, server := net.Pipe()
	defer func() { _ = client.Close() }()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		answer(w, r)
	})}
	l := &once{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- server
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-ended }()
	if _, err := client.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := bufio.NewReader(client).WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// once is a listener with one connection.
type once struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *once) Close() error   { close(l.closed); return nil }
func (l *once) Addr() net.Addr { return &net.TCPAddr{} }

// decided is a real engine's decision: of a policy with a limit of the snapshot's, after as many requests.
func decided(t *testing.T, response *quotav1.Response, requests int, limits ...*quotav1.Limit) *admission.Decision {
	t.Helper()
	e := admission.New(admission.Options{Keys: 64})
	now := limiter.Time(1_000_000_000_000)
	var shares []*quotav1.Share
	for _, l := range limits {
		shares = append(shares, &quotav1.Share{LimitId: l.Id, Units: quotav1.Whole, FillUnits: quotav1.Whole})
	}
	if err := e.Apply(&quotav1.Snapshot{Version: "1", Response: response, Policies: []*quotav1.Policy{
		{Uid: "u", Namespace: "shop", Name: "checkout", Limits: limits},
	}}, shares, now); err != nil {
		t.Fatal(err)
	}
	var d admission.Decision
	for range requests {
		d = e.Decide(&admission.Request{Method: "GET", Path: "/v1/x"}, now)
	}
	return &d
}

func limit(name string, requests, burst uint64, per time.Duration) *quotav1.Limit {
	return &quotav1.Limit{Id: name, Name: name, Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_EQUAL_SHARE, Burst: burst,
		Rate: &quotav1.Rate{Requests: requests, PeriodNanoseconds: uint64(per)}}
}

func TestDenialsAreGolden(t *testing.T) {
	get := "GET /v1/x HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
	head := strings.Replace(get, "GET", "HEAD", 1)
	grpc := "POST /shop.Cart/Add HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 0\r\nContent-Type: application/grpc+proto\r\n\r\n"
	perKey, service := limit("per-api-key", 5, 1, 6*time.Second), limit("whole-service", 1, 1, time.Hour)
	one := decided(t, nil, 2, perKey)
	missing := limit("per-tenant", 5, 5, time.Second)
	missing.Key, missing.MissingKey = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Header{Header: "x-tenant"}}}, quotav1.MissingKey_DENY
	costly := limit("graphql", 5, 5, time.Second)
	costly.Cost = &quotav1.Cost{Source: &quotav1.Cost_Tokens{Tokens: 6}}
	busy := limit("concurrent", 2, 2, time.Second)
	busy.Algorithm = quotav1.Algorithm_CONCURRENCY
	own := &quotav1.Response{Status: 503, Body: `{"limit":"${limit}","wait":${retryAfterSeconds}}` + "\n", ContentType: "application/json",
		Fields: []*quotav1.HeaderField{{Name: "X-Support", Value: "https://shop.example/limits"}}}
	draft, legacy := &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10}, &quotav1.Response{Headers: quotav1.HeaderFamily_X_RATE_LIMIT}
	unavailable := &admission.Decision{Unavailable: true}
	for name, tc := range map[string]struct {
		request  string
		decision *admission.Decision
	}{
		"http":                           {get, one},
		"http-head-has-no-body":          {head, one},
		"http-two-limits":                {get, decided(t, nil, 2, perKey, service)},
		"http-nobody-knows-when":         {get, decided(t, nil, 3, busy)},
		"http-own-answer":                {get, decided(t, own, 2, perKey)},
		"http-ietf-draft-10":             {get, decided(t, draft, 2, perKey, limit("whole-service", 100, 100, time.Second))},
		"http-ietf-draft-10-concurrency": {get, decided(t, draft, 3, busy)},
		"http-x-rate-limit":              {get, decided(t, legacy, 2, perKey, limit("whole-service", 100, 100, time.Second))},
		"http-key-missing":               {get, decided(t, nil, 1, missing)},
		"http-cost-too-high":             {get, decided(t, draft, 1, costly)},
		"grpc":                           {grpc, one},
		"grpc-ietf-draft-10":             {grpc, decided(t, draft, 2, perKey)},
		"grpc-cost-too-high":             {grpc, decided(t, nil, 1, costly)},
		"unavailable":                    {get, unavailable},
		"unavailable-head":               {head, unavailable},
		"unavailable-grpc":               {grpc, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var answer Answer
			got := wire(t, tc.request, func(w http.ResponseWriter, r *http.Request) {
				answer = To(AskerOf(r), tc.decision)
				answer.Write(w)
			})
			if diff := cmp.Diff(lines(got), lines(string(answer.Append(nil, true)))); diff != "" {
				t.Errorf("the engine of our own would answer otherwise than net/http:\n%s", diff)
			}
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// lines are an answer's lines, its header in alphabetical order: net/http chooses one of its own.
func lines(answer string) []string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	out := strings.Split(head, "\r\n")
	slices.Sort(out[1:])
	return append(out, body)
}

func TestRetryAfterIsRoundedUpAndNeverZero(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-time.Second: 1, 0: 1, 1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Minute: 5400, limiter.Never: 1,
	} {
		if got := (&denial{wait: d}).retrySeconds(); got != want {
			t.Errorf("%v is told as %d s, want %d", d, got, want)
		}
	}
}

func TestAllowedAnswersTellWhereTheClientStandsInTheFamilyThatThePolicyNames(t *testing.T) {
	perKey, service := limit("per-api-key", 600, 600, time.Minute), limit("whole-service", 1000, 100, time.Second)
	odd := limit("odd", 3, 3, 1500*time.Millisecond)
	for name, tc := range map[string]struct {
		decision *admission.Decision
		want     []Field
	}{
		"none by default":                        {decided(t, nil, 1, perKey), nil},
		"none where no limit counts the request": {decided(t, &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10}, 1), nil},
		"the tightest limit": {decided(t, &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10}, 1, perKey, service), []Field{
			{"Ratelimit-Policy", `"checkout/whole-service";q=1000;w=1`}, {"Ratelimit", `"checkout/whole-service";r=99;t=1`}}},
		"a window that is no whole second is left out": {decided(t, &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10}, 1, odd), []Field{
			{"Ratelimit-Policy", `"checkout/odd";q=3`}, {"Ratelimit", `"checkout/odd";r=2;t=1`}}},
		"the fields that most APIs send": {decided(t, &quotav1.Response{Headers: quotav1.HeaderFamily_X_RATE_LIMIT}, 20, perKey), []Field{
			{"X-Ratelimit-Limit", "600"}, {"X-Ratelimit-Remaining", "580"}, {"X-Ratelimit-Reset", "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Standing(tc.decision)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsGRPC(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x=y": true, "Application/GRPC": true,
		"application/grpc-web": false, "application/grpc-web+proto": false, "application/json": false, "": false, "application/grpcx": false,
	} {
		if got := admission.IsGRPC(contentType); got != want {
			t.Errorf("admission.IsGRPC(%q) = %v", contentType, got)
		}
	}
}

func TestGRPCMessagesAreEncoded(t *testing.T) {
	if got, want := percentEncode("50% über\n"), "50%25 %C3%BCber%0A"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
