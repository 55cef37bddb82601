// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/proxy/http1"
	"github.com/headgate/headgate/sidecar/proxy/loop"
)

// Options configure a Proxy. All exported fields are required.
type Options struct {
	// AppPort is the application's port on loopback.
	AppPort  int
	Engine   Engine
	Clock    func() limiter.Time
	Observer Observer

	limits   http1.Limits
	portable loop.Portable
}

// Proxy serves one inbound listener.
type Proxy struct {
	// Immutable after New.
	listener net.Listener
	options  Options

	handler http.Handler
	h2app   *http.Transport

	draining atomic.Bool
	inflight atomic.Int64 // requests over HTTP/2

	mu     sync.Mutex
	lanes  []*lane // while Serve runs
	closed bool
	ended  chan struct{} // closed when all lanes have ended
	h2     *server       // takes new HTTP/2 connections
	h2old  *server       // took them before the drain
}

// mostLanes bounds the loops of a proxy. One passes on some 40,000 requests per second.
const mostLanes = 8

// New returns a proxy that accepts connections of the listener, which must be a *net.TCPListener, once Serve runs.
func New(listener net.Listener, o Options) *Proxy {
	if o.limits == (http1.Limits{}) {
		o.limits = http1.DefaultLimits()
	}
	p := &Proxy{listener: listener, options: o, ended: make(chan struct{})}
	p.h2app = newTransport(o.AppPort)
	p.handler = p.counted(&handler{
		engine:   o.Engine,
		clock:    o.Clock,
		observer: o.Observer,
		forward:  newForward(p.h2app, strconv.Itoa(o.AppPort), o.Clock, p.draining.Load),
		draining: p.draining.Load,
	})
	p.h2 = p.newServer()
	return p
}

// serveH2 gives a connection to the server that takes HTTP/2 now.
func (p *Proxy) serveH2(conn net.Conn) {
	for {
		p.mu.Lock()
		s, closed := p.h2, p.closed
		p.mu.Unlock()
		if s.queue.put(conn) {
			return
		}
		if closed {
			_ = conn.Close()
			return
		}
	}
}

func (p *Proxy) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.inflight.Add(1)
		defer p.inflight.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// Serve accepts until Shutdown.
func (p *Proxy) Serve() error {
	listener, ok := p.listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("listener %v is a %T", p.listener.Addr(), p.listener)
	}
	lanes, err := p.open(listener)
	if err != nil || lanes == nil {
		return err
	}
	p.h2.start()
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(l.loop.Run)
	}
	running.Wait()
	close(p.ended)
	return nil
}

// open makes the lanes. There are none after Shutdown.
func (p *Proxy) open(listener *net.TCPListener) ([]*lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	for range min(runtime.GOMAXPROCS(0), mostLanes) {
		l, err := newLane(p)
		if err == nil {
			l.listener, err = l.loop.Listen(listener, l.greet)
		}
		if err != nil {
			return nil, fmt.Errorf("accepting on %v: %w", p.listener.Addr(), err)
		}
		p.lanes = append(p.lanes, l)
	}
	return p.lanes, nil
}
