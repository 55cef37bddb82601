// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/proxy/http1"
	"github.com/headgate/headgate/sidecar/proxy/loop"
)

// Options configure a Proxy. Fields are required where they do not say otherwise.
type Options struct {
	// AppPort is the application's port on loopback.
	AppPort  int
	Engine   Engine
	Clock    func() limiter.Time
	Observer Observer
	// Limits bound what clients may make the proxy hold; http1.DefaultLimits when zero.
	Limits http1.Limits

	portable loop.Portable
}

// Proxy serves one inbound listener.
type Proxy struct {
	// Immutable after New.
	listener net.Listener
	options  Options

	draining atomic.Bool
	asked    atomic.Int64 // when a client came last; noted while draining

	mu     sync.Mutex
	lanes  []*lane // while Serve runs
	closed bool
	ended  chan struct{} // closed when all lanes have ended
}

// mostLanes bounds the loops of a proxy. One passes on some 40,000 requests per second.
const mostLanes = 8

// New returns a proxy that accepts connections of the listener, which must be a *net.TCPListener, once Serve runs.
func New(listener net.Listener, o Options) *Proxy {
	if o.Limits == (http1.Limits{}) {
		o.Limits = http1.DefaultLimits()
	}
	return &Proxy{listener: listener, options: o, ended: make(chan struct{})}
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
