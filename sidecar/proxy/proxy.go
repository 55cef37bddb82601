package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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

const (
	// headPatience bounds how long a request's head may take (slowloris).
	headPatience = 10 * time.Second
	// maxHead bounds a request's head; Envoy allows 60 KiB.
	maxHead = 64 << 10
	// clientIdle is longer than load balancers keep idle connections (600 s on Google's), so that they close first and
	// no request meets a closing connection.
	clientIdle = 620 * time.Second
	// endPoll is how often the end of the last request is looked for.
	endPoll = 10 * time.Millisecond
)

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
				time.Sleep(endPoll) // no file descriptors: those that end will free some
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

// Drain makes every answer from now on ask the client to go elsewhere. Connections are still accepted and served: the
// endpoints that lead here disappear only slowly.
func (p *Proxy) Drain() {
	if p.draining.Swap(true) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	// Shutdown is the only way to have net/http send GOAWAY on connections without a request. It ends the server, so that
	// another one takes the connections to come. HTTP/1.1 has no such message: there, Shutdown would cut idle connections
	// under requests that are on their way.
	old := p.h2
	p.h2, p.h2old = p.newServer(true), old
	p.h2.start()
	go func() { _ = old.http.Shutdown(context.Background()) }()
}

// Shutdown stops accepting and waits for the requests in flight until the context ends; then it cuts them.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	servers := []*server{p.h1, p.h2}
	if p.h2old != nil {
		servers = append(servers, p.h2old)
	}
	p.mu.Unlock()
	var waiting sync.WaitGroup
	for _, s := range servers {
		waiting.Go(func() { _ = s.http.Shutdown(ctx) })
	}
	err := p.quiet(ctx)
	waiting.Wait()
	for _, s := range servers {
		_ = s.http.Close()
		s.wait()
	}
	p.hush()
	p.h1app.CloseIdleConnections()
	p.h2app.CloseIdleConnections()
	return err
}

// quiet waits until no request is in flight. http.Server does not wait for upgraded connections.
func (p *Proxy) quiet(ctx context.Context) error {
	poll := time.NewTicker(endPoll)
	defer poll.Stop()
	for p.inflight.Load() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%d requests cut: %w", p.inflight.Load(), ctx.Err())
		}
	}
	return nil
}

// hush closes the connections that have said nothing and waits for their goroutines.
func (p *Proxy) hush() {
	p.mu.Lock()
	for conn := range p.silent {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.sniffing.Wait()
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

// server is an http.Server for one protocol, fed through a queue.
type server struct {
	http  *http.Server
	queue *queue
	ended chan struct{} // nil before start
}

func (p *Proxy) newServer(h2 bool) *server {
	s := &server{queue: newQueue(p.listener.Addr())}
	s.http = &http.Server{
		Handler:           p.handler,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: headPatience,
		IdleTimeout:       clientIdle,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do wrong is not for our log
	}
	if h2 {
		s.http.Protocols.SetUnencryptedHTTP2(true)
	} else {
		s.http.Protocols.SetHTTP1(true)
	}
	return s
}

func (s *server) start() {
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(s.queue) // always ErrServerClosed
	}()
}

func (s *server) wait() {
	if s.ended != nil {
		<-s.ended
	}
}

func temporary(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Temporary() //nolint:staticcheck // EMFILE and its like say nothing else
}
