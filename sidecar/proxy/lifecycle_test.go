// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

func TestDrainAsksClientsToGoAndStillServesThem(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	idle := dial(t, g.address)
	in := bufio.NewReader(idle)
	ask := func() *http.Response {
		t.Helper()
		_, _ = io.WriteString(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = body(t, response)
		return response
	}
	if response := ask(); response.Close {
		t.Fatal("the connection is closed without a drain")
	}
	g.Drain()
	g.Drain()
	if response := ask(); response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("on an idle connection: %d, close = %v", response.StatusCode, response.Close)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
	both(t, func(t *testing.T, h2 bool) {
		c := client(t, h2)
		for range 3 {
			response, err := c.Get(g.url("/"))
			if err != nil {
				t.Fatalf("a new connection is not served: %v", err)
			}
			if got := body(t, response); got != "ok" {
				t.Errorf("got %q", got)
			}
		}
	})
	g.engine.answer.Store(&admission.Decision{RetryAfter: limiter.Never})
	if answer := raw(t, g.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(answer, "Connection: close") {
		t.Errorf("a denial keeps the connection: %q", answer)
	}
}

func TestDrainTellsIdleHTTP2ConnectionsToGo(t *testing.T) {
	more, arrived := make(chan struct{}), make(chan struct{}, 1)
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-more
	}))
	idle, busy := newH2(t, g.address), newH2(t, g.address)
	isGoAway := func(f http2.Frame) bool { _, ok := f.(*http2.GoAwayFrame); return ok }
	busy.ask(1)
	<-arrived
	g.Drain()
	idle.await(isGoAway)
	busy.await(isGoAway)
	close(more)
	if status := busy.answer(1); status != "200" {
		t.Errorf("a request that was in flight at GOAWAY got %s", status)
	}
}

// h2 is an HTTP/2 client that shows its frames.
type h2 struct {
	t      *testing.T
	framer *http2.Framer
	block  strings.Builder
	encode *hpack.Encoder
	ping   *[8]byte // the last one
}

func newH2(t *testing.T, address string) *h2 {
	t.Helper()
	conn := dial(t, address)
	c := &h2{t: t, framer: http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.encode = hpack.NewEncoder(&c.block)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	if err := c.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	// From here on the server knows the connection. One that it does not know yet is told to go by its first answer.
	c.await(func(f http2.Frame) bool { _, ok := f.(*http2.SettingsFrame); return ok })
	return c
}

// ask sends a request on a stream.
func (c *h2) ask(stream uint32) {
	c.t.Helper()
	c.block.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}} {
		if err := c.encode.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			c.t.Fatal(err)
		}
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(c.block.String()), EndStream: true, EndHeaders: true})
	if err != nil {
		c.t.Fatal(err)
	}
}

// answer awaits the status on a stream.
func (c *h2) answer(stream uint32) (status string) {
	c.t.Helper()
	c.await(func(f http2.Frame) bool {
		if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamID == stream {
			status = h.PseudoValue("status")
			return true
		}
		return false
	})
	return status
}

func (c *h2) await(wanted func(http2.Frame) bool) {
	c.t.Helper()
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			c.t.Fatal(err)
		}
		if s, ok := f.(*http2.SettingsFrame); ok && !s.IsAck() {
			if err := c.framer.WriteSettingsAck(); err != nil {
				c.t.Fatal(err)
			}
		}
		if p, ok := f.(*http2.PingFrame); ok && !p.IsAck() {
			data := p.Data
			c.ping = &data
		}
		if wanted(f) {
			return
		}
	}
}

func TestShutdownWaitsForRequestsAndUpgradedConnections(t *testing.T) {
	more, arrived := make(chan struct{}), make(chan struct{}, 2)
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		if r.Header.Get("Upgrade") == "" {
			<-more
			_, _ = io.WriteString(w, "late")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = rw.Flush()
		<-more
		_, _ = io.WriteString(conn, "late")
	}))
	slow, upgraded := dial(t, g.address), dial(t, g.address)
	_, _ = io.WriteString(slow, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	_, _ = io.WriteString(upgraded, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	<-arrived
	<-arrived
	ended := make(chan error, 1)
	go func() { ended <- g.Shutdown(context.Background()) }()
	eventually(t, "new connections to be refused", func() bool {
		conn, err := net.Dial("tcp", g.address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	select {
	case err := <-ended:
		t.Fatalf("ended with requests in flight: %v", err)
	default:
	}
	close(more)
	for _, c := range []net.Conn{slow, upgraded} {
		if all, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(all), "late") {
			t.Errorf("got %q, %v", all, err)
		}
		_ = c.Close()
	}
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownCutsWhatOutlastsTheGrace(t *testing.T) {
	arrived := make(chan struct{})
	g := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	c := dial(t, g.address)
	silent := dial(t, g.address)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	for _, conn := range []net.Conn{c, silent} {
		if all, err := io.ReadAll(conn); len(all) > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v", all, err)
		}
	}
}

// Clients with keep-alive connections must not notice a drain: each request is answered, and each client finds its way
// from the draining proxy to the other one, as it does by a Service.
func TestNoRequestFailsWhenAProxyDrainsUnderLoad(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	both(t, func(t *testing.T, h2 bool) {
		leaving, staying := serve(t, app), serve(t, app)
		var target atomic.Pointer[string]
		target.Store(&leaving.address)
		var served, failed, onOld atomic.Int64
		var clients sync.WaitGroup
		stop := make(chan struct{})
		for range 8 {
			c := client(t, h2)
			c.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", *target.Load())
			}
			clients.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					var sent io.Reader = strings.NewReader("hello")
					if !h2 {
						// Without GetBody the client cannot send a request again behind our back. In HTTP/2 it may: GOAWAY
						// says which requests were not looked at, and net/http sends no second, later GOAWAY.
						sent = io.NopCloser(sent)
					}
					r, err := http.NewRequest(http.MethodPost, "http://shop/", sent)
					if err != nil {
						panic(err)
					}
					trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
						if i.Conn.RemoteAddr().String() == leaving.address {
							onOld.Store(served.Load())
						}
					}}
					response, err := c.Do(r.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
					if err != nil {
						t.Errorf("a request failed: %v", err)
						failed.Add(1)
						return
					}
					b, err := io.ReadAll(response.Body)
					_ = response.Body.Close()
					if err != nil || string(b) != "hello" || response.StatusCode != http.StatusOK {
						t.Errorf("got %d, %q, %v", response.StatusCode, b, err)
						failed.Add(1)
						return
					}
					served.Add(1)
				}
			})
		}
		reach := func(n int64) {
			eventually(t, "requests", func() bool { return served.Load() >= n || failed.Load() > 0 })
		}
		reach(200)
		leaving.Drain()
		target.Store(&staying.address)
		reach(served.Load() + 400)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := leaving.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		before := served.Load()
		reach(before + 100)
		close(stop)
		clients.Wait()
		if failed.Load() > 0 || served.Load() < before+100 {
			t.Errorf("%d served, %d failed", served.Load(), failed.Load())
		}
		if onOld.Load() > before {
			t.Error("a client still uses the proxy that has gone")
		}
	})
}
