// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

// Engine is the part of the admission engine that is shown and asked.
type Engine interface {
	DecideWait(ctx context.Context, now limiter.Time, requests ...*admission.Request) (d admission.Decision, ok bool)
	Explain(r *admission.Request, now limiter.Time) (x admission.Explanation, ok bool)
	State(now limiter.Time) admission.State
	// Ready returns nil when a snapshot is in force and each of its limits has a share.
	Ready() error
}

// Options configure the servers. All fields are required but Probes.
type Options struct {
	Pod         string
	Version     string
	Incarnation string
	Engine      Engine
	Clock       func() limiter.Time
	Quota       func() quota.Status
	Draining    func() bool
	// Drain begins the drain and returns at once; calling it again does nothing.
	Drain func()
	// Asked is when a client came last, with a connection or a request, since the drain began; 0 = none has.
	Asked func() limiter.Time
	// Probes answers below quotav1.PathProbe for the app; nil = the kubelet asks the app itself.
	Probes http.Handler
}

// Admin holds the handlers of both servers.
type Admin struct {
	options Options
	metrics *metrics
	waiting atomic.Int64 // callers of quiet
}

// New returns the handlers.
func New(o Options) *Admin {
	return &Admin{options: o, metrics: newMetrics(o)}
}

// Observe notes how long a decision took.
func (a *Admin) Observe(seconds float64) { a.metrics.decisions.Observe(seconds) }

// Public returns the handler for the pod's address.
func (a *Admin) Public() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+quotav1.PathStarted, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "started\n")
	})
	mux.HandleFunc("GET "+quotav1.PathReady, a.readiness)
	mux.HandleFunc("GET "+quotav1.PathQuiet, a.quiet)
	mux.Handle("GET "+quotav1.PathMetrics, a.metrics.handler())
	if a.options.Probes != nil {
		mux.Handle("GET "+quotav1.PathProbe, a.options.Probes)
	}
	return mux
}

// Local returns the handler for loopback.
func (a *Admin) Local() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+quotav1.PathState, a.state)
	mux.HandleFunc("POST "+quotav1.PathCheck, a.check)
	mux.HandleFunc("POST "+quotav1.PathExplain, a.explain)
	mux.HandleFunc("POST "+quotav1.PathDrain, func(w http.ResponseWriter, _ *http.Request) {
		a.options.Drain()
		_, _ = io.WriteString(w, "draining\n")
	})
	return mux
}

// Server returns an HTTP server for one of the handlers.
func Server(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the reader has gone
}
