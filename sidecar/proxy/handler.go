// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/netip"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// handler is the way of a request over HTTP/2: decide, then forward or deny.
type handler struct {
	engine   Engine
	clock    func() limiter.Time
	observer Observer
	forward  http.Handler
	draining func() bool
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	decided := make(chan admission.Decision, 1)
	d := decider{engine: h.engine, clock: h.clock, observer: h.observer, request: admission.Request{
		Method: r.Method,
		Path:   sentPath(r),
		Query:  r.URL.RawQuery,
		Host:   r.Host,
		Header: r.Header,
		Peer:   peer(r.RemoteAddr),
	}}
	decision, held := d.decide(func(d admission.Decision) { decided <- d })
	if held != nil {
		select {
		case decision = <-decided:
		case <-r.Context().Done():
			held.Cancel()
			panic(http.ErrAbortHandler) // the client has gone
		}
	}
	if decision.Allowed {
		defer decision.Ticket.End()
		h.forward.ServeHTTP(w, withAdmitted(r, &decision))
		return
	}
	if h.draining() {
		w.Header().Set("Connection", "close")
	}
	answer := respond.To(respond.AskerOf(r), &decision)
	answer.Write(w)
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
