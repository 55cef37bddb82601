// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/headgate/headgate/limiter"
)

// newForward returns the handler that passes requests to the application on a loopback port.
func newForward(h2 http.RoundTripper, port string, clock func() limiter.Time, draining func() bool) http.Handler {
	over2 := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, port) },
		Transport:     h2,
		FlushInterval: -1, // streams: pass on what comes when it comes
		BufferPool:    &buffers,
		ErrorLog:      log.New(io.Discard, "", 0), // nothing is logged per request
		ErrorHandler:  unreachable,
		ModifyResponse: func(r *http.Response) error {
			if draining() {
				r.Header.Set("Connection", "close") // HTTP/2: GOAWAY
			}
			answered(r, clock)
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil // an answer without one stays without one
		over2.ServeHTTP(w, r)
	})
}

// rewrite addresses the request to the application and undoes what ReverseProxy changes on its own: the sidecar is part
// of the pod, not a proxy that anybody configured.
func rewrite(r *httputil.ProxyRequest, port string) {
	out := r.Out
	out.URL.Scheme = "http"
	out.URL.Host = net.JoinHostPort("127.0.0.1", port)
	out.Host = r.In.Host
	out.URL.RawQuery = r.In.URL.RawQuery
	out.URL.ForceQuery = r.In.URL.ForceQuery
	keepPath(out.URL, r.In)
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			out.Header[name] = values
		}
	}
	if peer, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
		chain := append(append([]string(nil), r.In.Header["X-Forwarded-For"]...), peer)
		out.Header["X-Forwarded-For"] = []string{strings.Join(chain, ", ")}
	}
}

// keepPath has the path forwarded as sent. net/url encodes anew a path that holds bytes which should have been encoded
// (such as '|'); Opaque is written as it is, except where it begins with two slashes.
func keepPath(out *url.URL, in *http.Request) {
	sent, _, _ := strings.Cut(in.RequestURI, "?")
	if strings.HasPrefix(sent, "/") && !strings.HasPrefix(sent, "//") && sent != out.EscapedPath() {
		out.Opaque = sent
	}
}

// unreachable answers for an application that is away or broke off: 502, which nobody takes for a denial.
func unreachable(w http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, "headgate: the application did not answer\n")
}

// buffers are for copying bodies.
var buffers bufferPool

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
