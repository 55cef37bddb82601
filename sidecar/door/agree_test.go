// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package door_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pgregory.net/rapid"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	rlsv3 "github.com/headgate/headgate/api/rls/v3"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/door"
	"github.com/headgate/headgate/sidecar/proxy"
	"github.com/headgate/headgate/sidecar/quota"
)

// wish is a request as all doors can be told of it.
type wish struct {
	method, path, host string
	header             map[string]string
}

type nobody struct{}

func (nobody) Observe(float64) {}

// Whatever the policies and the requests, a door's verdict is the proxy's.
func TestNoDoorEverDecidesDifferentlyFromTheProxy(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	now := func() limiter.Time { return start }
	rapid.Check(t, func(rt *rapid.T) {
		limits := rapid.SliceOfN(rapid.Custom(anyLimit), 1, 4).Draw(rt, "limits")
		for i, l := range limits {
			l.Id, l.Name = fmt.Sprint("l", i), fmt.Sprint("l", i)
		}
		behind, checked, asked := engine(rt, 1, limits...), engine(rt, 1, limits...), engine(rt, 1, limits...)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			rt.Fatal(err)
		}
		p := proxy.New(l, proxy.Options{AppPort: app.Listener.Addr().(*net.TCPAddr).Port, Engine: behind, Clock: now, Observer: nobody{}})
		ended := make(chan error, 1)
		go func() { ended <- p.Serve() }()
		client := http.Client{Transport: &http.Transport{}}
		defer func() {
			client.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := p.Shutdown(ctx); err != nil {
				rt.Error(err)
			}
			if err := <-ended; err != nil {
				rt.Error(err)
			}
		}()
		check := admin.New(admin.Options{Engine: checked, Clock: now, Quota: func() quota.Status { return quota.Status{} }}).Local()
		rls := &door.RateLimit{Engine: asked, Clock: now}

		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			w := rapid.Custom(anyWish).Draw(rt, "request")
			proxied := throughProxy(rt, &client, l.Addr().String(), w)
			if got := throughCheck(rt, check, w); got != proxied {
				rt.Fatalf("%+v: the proxy says %v, /v1/check says %v", w, proxied, got)
			}
			if got := throughRateLimit(rt, rls, w); got != proxied {
				rt.Fatalf("%+v: the proxy says %v, Envoy's service says %v", w, proxied, got)
			}
		}
	})
}

func anyLimit(t *rapid.T) *quotav1.Limit {
	n := rapid.Uint64Range(1, 4).Draw(t, "burst")
	l := limit("", n, n)
	switch rapid.IntRange(0, 3).Draw(t, "match") {
	case 0:
		l.Matches = []*quotav1.Match{{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: "/v1"}}}
	case 1:
		l.Matches = []*quotav1.Match{{Methods: []string{"POST"}}, {Query: []*quotav1.QueryMatch{{Name: "q", Type: quotav1.HeaderMatch_PRESENT}}}}
	case 2:
		l.Matches = []*quotav1.Match{{Hosts: []string{"*.example"}}}
	}
	switch rapid.IntRange(0, 3).Draw(t, "key") {
	case 0:
		byHeader("x-key")(l)
		l.MissingKey = quotav1.MissingKey(rapid.Int32Range(0, 2).Draw(t, "missing"))
	case 1:
		l.Key = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Request{Request: quotav1.RequestPart_PATH}}}
	case 2:
		l.Key = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Expression{Expression: "request.method + request.host"}}}
	}
	switch rapid.IntRange(0, 3).Draw(t, "cost") {
	case 0:
		l.Cost = &quotav1.Cost{Source: &quotav1.Cost_Header{Header: "x-cost"}}
	case 1:
		l.When = "request.headers['x-key'] != 'a'"
	case 2:
		l.Shadow = true
	}
	return l
}

func anyWish(t *rapid.T) wish {
	w := wish{
		method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"),
		path:   rapid.SampledFrom([]string{"/", "/v1", "/v1/x", "/v2?q=1", "/v2/../v1/x", "/v1%2Fx?q", "//v1;a=b/x", "/%76%31"}).Draw(t, "path"),
		host:   rapid.SampledFrom([]string{"shop.example", "Shop.Example:8080", "other"}).Draw(t, "host"),
		header: map[string]string{},
	}
	if key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"); key != "" {
		w.header["X-Key"] = key
	}
	if cost := rapid.SampledFrom([]string{"", "2", "-1", "many", "99"}).Draw(t, "cost"); cost != "" {
		w.header["X-Cost"] = cost
	}
	return w
}

func throughProxy(t *rapid.T, client *http.Client, address string, w wish) bool {
	r, err := http.NewRequest(w.method, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = "//" + w.host + w.path // as it is written, in absolute form
	r.Host = w.host
	r.URL.Host = address
	for name, value := range w.header {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func throughCheck(t *rapid.T, h http.Handler, w wish) bool {
	headers := map[string][]string{}
	for name, value := range w.header {
		headers[name] = []string{value}
	}
	body, err := json.Marshal(admin.CheckRequest{Method: w.method, Path: w.path, Host: w.host, Headers: headers, Peer: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, quotav1.PathCheck, bytes.NewReader(body)))
	var out admin.CheckResponse
	if recorder.Code != http.StatusOK || json.Unmarshal(recorder.Body.Bytes(), &out) != nil {
		t.Fatalf("answered %d: %s", recorder.Code, recorder.Body)
	}
	return out.Allowed
}

func throughRateLimit(t *rapid.T, s *door.RateLimit, w wish) bool {
	d := descriptor(":method", w.method, ":path", w.path, ":authority", w.host, "remote_address", "127.0.0.1")
	for name, value := range w.header {
		d.Entries = append(d.Entries, &rlsv3.Descriptor_Entry{Key: name, Value: value})
	}
	out, err := s.ShouldRateLimit(context.Background(), call(1, d))
	if err != nil {
		t.Fatal(err)
	}
	return out.OverallCode == rlsv3.RateLimitResponse_OK
}

var _ door.Engine = (*admission.Engine)(nil)
