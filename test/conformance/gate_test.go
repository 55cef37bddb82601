// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the sidecar's data plane to what others have written about its protocols: h2spec, and gRPC's own
// interoperability cases. It is a module of its own, since these bring dependencies that no program needs.
package conformance

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy"
)

// decided is how many requests have been decided by all gates.
var decided atomic.Int64

type counter struct{}

func (counter) Observe(float64) { decided.Add(1) }

// gate runs a proxy with a limit that denies nothing in front of an application, and returns its address.
func gate(t *testing.T, app net.Listener) *net.TCPAddr {
	t.Helper()
	limit := &quotav1.Limit{Id: "all", Name: "all", Rate: &quotav1.Rate{Requests: 1_000_000, PeriodNanoseconds: uint64(time.Second)}, Burst: 1_000_000,
		Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_EQUAL_SHARE}
	engine := admission.New(admission.Options{})
	err := engine.Apply(&quotav1.Snapshot{Version: "1", Policies: []*quotav1.Policy{{Uid: "u", Namespace: "n", Name: "p", Limits: []*quotav1.Limit{limit}}}},
		[]*quotav1.Share{{LimitId: "all", Units: quotav1.Whole, FillUnits: quotav1.Whole}}, limiter.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(l, proxy.Options{AppPort: app.Addr().(*net.TCPAddr).Port, Engine: engine, Clock: limiter.Now, Observer: counter{}})
	ended := make(chan error, 1)
	go func() { ended <- p.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // the suites leave connections open
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().(*net.TCPAddr)
}

// application speaks HTTP/1.1 and HTTP/2 without TLS.
func application(t *testing.T, h http.Handler) net.Listener {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener
}
