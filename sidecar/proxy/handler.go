// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// Engine decides requests.
type Engine interface {
	Decide(r *admission.Request, now limiter.Time) admission.Decision
}

// Observer is told how long each decision took.
type Observer interface {
	Observe(seconds float64)
}

// handler is the way of a request: decide, then forward or deny.
type handler struct {
	engine   Engine
	clock    func() limiter.Time
	observer Observer
	forward  http.Handler
	draining func() bool
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.clock()
	decision := h.engine.Decide(&admission.Request{
		Method: r.Method,
		Path:   sentPath(r),
		Host:   r.Host,
		Header: r.Header,
		Peer:   peer(r.RemoteAddr),
	}, began)
	h.observer.Observe(h.clock().Sub(began).Seconds())
	if decision.Allowed {
		h.forward.ServeHTTP(w, r)
		return
	}
	if h.draining() {
		w.Header().Set("Connection", "close")
	}
	answer := respond.Unavailable(respond.AskerOf(r))
	if !decision.Unavailable {
		answer = respond.Deny(respond.AskerOf(r), respond.Denial{Limits: decision.Names(), RetryAfter: retryAfter(decision)})
	}
	answer.Write(w)
}

// retryAfter is 0 where waiting does not help or nobody knows.
func retryAfter(d admission.Decision) time.Duration {
	if d.RetryAfter == limiter.Never {
		return 0
	}
	return d.RetryAfter
}

// sentPath is the path as the client wrote it.
func sentPath(r *http.Request) string {
	uri := r.RequestURI
	if len(uri) > 0 && uri[0] == '/' {
		for i := 0; i < len(uri); i++ {
			if uri[i] == '?' {
				return uri[:i]
			}
		}
		return uri
	}
	return r.URL.EscapedPath() // absolute form
}

// peer is the address at the other end, the zero address when it is none (which no limit by client address matches).
func peer(remote string) netip.Addr {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr()
}
