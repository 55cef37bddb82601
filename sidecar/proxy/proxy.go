// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/limiter"
)

// Options configure a Proxy. All fields are required.
type Options struct {
	// AppPort is the application's port on loopback.
	AppPort  int
	Engine   Engine
	Clock    func() limiter.Time
	Observer Observer
}

// Proxy serves one inbound listener.
type Proxy struct {
	// Immutable after New.
	listener net.Listener
	handler  http.Handler
	h1app    *http.Transport
	h2app    *http.Transport
	h1       *server

	// Safe for all goroutines.
	draining atomic.Bool
	inflight atomic.Int64 // requests between head and end, upgraded connections included
	sniffing sync.WaitGroup

	mu     sync.Mutex
	h2     *server                   // takes new HTTP/2 connections
	h2old  *server                   // took them before the drain
	silent map[*net.TCPConn]struct{} // connections that have not spoken yet
	closed bool
}

// poll is how often the end of something is looked for that nobody announces.
const poll = 10 * time.Millisecond

// New returns a proxy that accepts connections of the listener, which must yield *net.TCPConn, once Serve runs.
func New(listener net.Listener, o Options) *Proxy {
	p := &Proxy{listener: listener, silent: map[*net.TCPConn]struct{}{}}
	p.h1app, p.h2app = newTransports(o.AppPort)
	p.handler = p.counted(&handler{
		engine:   o.Engine,
		clock:    o.Clock,
		observer: o.Observer,
		forward:  newForward(p.h1app, p.h2app, strconv.Itoa(o.AppPort), p.draining.Load),
		draining: p.draining.Load,
	})
	p.h1 = p.newServer(false)
	p.h2 = p.newServer(true)
	return p
}

// Serve accepts until Shutdown.
func (p *Proxy) Serve() error {
	p.h1.start()
	p.h2.start()
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			if temporary(err) {
				time.Sleep(poll) // no file descriptors: those that end will free some
				continue
			}
			return fmt.Errorf("accepting on %v: %w", p.listener.Addr(), err)
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			_ = conn.Close()
			return fmt.Errorf("listener %v yields %T", p.listener.Addr(), conn)
		}
		p.sniffing.Add(1)
		go p.hand(tcp)
	}
}

// hand gives a connection to the server of its protocol.
func (p *Proxy) hand(tcp *net.TCPConn) {
	defer p.sniffing.Done()
	p.mu.Lock()
	p.silent[tcp] = struct{}{}
	p.mu.Unlock()
	conn, isH2, err := sniff(tcp, headPatience)
	p.mu.Lock()
	delete(p.silent, tcp)
	p.mu.Unlock()
	if err != nil {
		_ = tcp.Close()
		return
	}
	if !isH2 {
		if !p.h1.queue.put(conn) {
			_ = conn.Close()
		}
		return
	}
	for !p.newest().queue.put(conn) {
		if p.over() {
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

func (p *Proxy) newest() *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.h2
}

func (p *Proxy) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func temporary(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Temporary() //nolint:staticcheck // EMFILE and its like say nothing else
}
