// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

// goAway awaits a GOAWAY.
func (c *h2) goAway() (last uint32, code http2.ErrCode) {
	c.t.Helper()
	c.await(func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		if ok {
			last, code = g.LastStreamID, g.ErrCode
		}
		return ok
	})
	return last, code
}

func TestADrainSaysWhichStreamsAreServedOnceTheClientHasHeardOfIt(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := newH2(t, g.address)
	c.ask(1)
	if status := c.answer(1); status != "200" {
		t.Fatalf("got %s", status)
	}
	g.Drain()
	if last, code := c.goAway(); last != 1<<31-1 || code != http2.ErrCodeNo {
		t.Errorf("first GOAWAY says %d, %v", last, code)
	}
	c.ask(3) // it was on its way
	if status := c.answer(3); status != "200" {
		t.Errorf("a request between the two got %s", status)
	}
	var ping [8]byte
	c.pings(&ping)
	if err := c.framer.WritePing(true, ping); err != nil {
		t.Fatal(err)
	}
	if last, code := c.goAway(); last != 3 || code != http2.ErrCodeNo {
		t.Errorf("second GOAWAY says %d, %v", last, code)
	}
	if _, err := c.framer.ReadFrame(); err == nil {
		t.Error("the connection stays though nothing is served on it any more")
	}
}

// pings awaits a PING, unless it has come.
func (c *h2) pings(data *[8]byte) {
	if c.ping != nil {
		*data = *c.ping
		return
	}
	c.await(func(f http2.Frame) bool {
		p, ok := f.(*http2.PingFrame)
		if ok {
			*data = p.Data
		}
		return ok
	})
}

func TestAFloodOfRequestsTakenBackEndsTheConnection(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	c := newH2(t, g.address)
	for stream := uint32(1); stream < 1300; stream += 2 {
		c.ask(stream)
		if err := c.framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
	}
	if _, code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("got %v", code)
	}
}

func TestAHeadWithoutEndEndsTheConnection(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the application was asked") }))
	for name, part := range map[string][]byte{"empty": {}, "large": bytes.Repeat([]byte{0x82}, 16000)} {
		t.Run(name, func(t *testing.T) {
			c := newH2(t, g.address)
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
			for range max(40-len(part)/400, 6) { // more than is taken, and less than is swallowed
				_ = c.framer.WriteContinuation(1, false, part)
			}
			if _, code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got %v", code)
			}
		})
	}
}

func TestAHeadThatIsTooLargeIsAnsweredAndNothingElseSuffers(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := newH2(t, g.address)
	c.block.Reset()
	for i := range 2000 {
		if err := c.encode.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i%10), Value: "0123456789012345678901234567890123456789"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(c.block.String()), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if status := c.answer(1); status != "431" {
		t.Errorf("got %s", status)
	}
	c.ask(3)
	if status := c.answer(3); status != "200" {
		t.Errorf("the next request got %s: the compression has lost its state", status)
	}
}

// The sidecar's own answers take from the window that the client grants to the application.
func TestDenialsDoNotBreakTheApplicationsFlowControl(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 60_000)
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	c := newH2(t, g.address)
	g.engine.answer.Store(&admission.Decision{RetryAfter: limiter.Never})
	received := 0 // DATA, for which nothing is granted yet
	stream := uint32(1)
	for range 400 {
		c.ask(stream)
		over := false
		for !over {
			c.await(func(f http2.Frame) bool {
				switch f := f.(type) {
				case *http2.MetaHeadersFrame:
					if f.PseudoValue("status") != "429" {
						t.Fatalf("got %s", f.PseudoValue("status"))
					}
					over = f.StreamEnded()
				case *http2.DataFrame:
					received += len(f.Data())
					over = f.StreamEnded()
				default:
					return false
				}
				return true
			})
		}
		stream += 2
	}
	if received == 0 || received > 65535 {
		t.Fatalf("%d bytes of denials on a window of 65535", received)
	}
	g.engine.answer.Store(&admission.Decision{Allowed: true})
	c.ask(stream)
	if err := c.framer.WriteWindowUpdate(0, uint32(received)); err != nil {
		t.Fatal(err)
	}
	got := 0
	c.await(func(f http2.Frame) bool {
		if d, ok := f.(*http2.DataFrame); ok && d.StreamID == stream {
			got += len(d.Data())
			return d.StreamEnded()
		}
		return false
	})
	if got != len(content) {
		t.Errorf("%d bytes of the application's answer, want %d", got, len(content))
	}
}

func TestAnApplicationThatLeavesTakesItsClientsAlong(t *testing.T) {
	more, arrived := make(chan struct{}), make(chan struct{}, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-more
		_, _ = io.WriteString(w, "late")
	})}
	app.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = app.Serve(l) }()
	t.Cleanup(func() { _ = app.Close(); <-ended })
	g := serveAt(t, l.Addr().(*net.TCPAddr).Port)
	c := newH2(t, g.address)
	c.ask(1)
	<-arrived
	left := make(chan error, 1)
	go func() { left <- app.Shutdown(context.Background()) }()
	c.goAway()
	close(more)
	if status := c.answer(1); status != "200" {
		t.Errorf("a request that was in flight got %s", status)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
}

func TestAnApplicationThatDiesIsABadGatewayOrACutAnswer(t *testing.T) {
	died := make(chan struct{}, 2)
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			return
		}
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		died <- struct{}{}
		panic(http.ErrAbortHandler)
	})
	g := serve(t, app)
	response, err := client(t, true).Get(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if b, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("a cut answer reads as a whole one: %q", b)
	}
}

// What a client sends while its request is held goes on with it, and holds nobody else up.
func TestBodiesOfHeldRequestsArriveWhole(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%d %s", len(b), r.Trailer.Get("X-Sum"))
	}))
	g.engine.holds.Store(true)
	c := client(t, true)
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			size := i * 1500
			r, err := http.NewRequest(http.MethodPost, g.url("/"), io.LimitReader(zeros{}, int64(size)))
			if err != nil {
				t.Error(err)
				return
			}
			r.Trailer = http.Header{"X-Sum": {fmt.Sprint(i)}}
			response, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if want := fmt.Sprintf("%d %d", size, i); err != nil || string(b) != want {
				t.Errorf("got %q, %v, want %q", b, err, want)
			}
		})
	}
	asking.Wait()
	g.engine.answer.Store(&admission.Decision{RetryAfter: limiter.Never})
	response, err := c.Post(g.url("/"), "", io.LimitReader(zeros{}, 200_000))
	if err != nil {
		t.Fatal(err)
	}
	if _ = body(t, response); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %d", response.StatusCode)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
