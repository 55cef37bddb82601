// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/admission"
)

func TestTLSIsPassedThroughUntouched(t *testing.T) {
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, r.Header.Get("X-Forwarded-For"))
	}))
	app.EnableHTTP2 = true
	app.StartTLS()
	t.Cleanup(app.Close)
	g := serveAt(t, app.Listener.Addr().(*net.TCPAddr).Port)
	c := app.Client() // trusts the application's certificate: nobody else's would do
	response, err := c.Get("https://" + g.address)
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, response); got != "HTTP/2.0 " {
		t.Errorf("got %q", got)
	}
	c.CloseIdleConnections()
}

// echoes is an application of some other protocol. It ends its side once the client has.
func echoes(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().(*net.TCPAddr).Port
}

func TestOtherProtocolsArePassedThroughInBothDirections(t *testing.T) {
	g := serveAt(t, echoes(t))
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for name, sent := range map[string]string{
		"PostgreSQL": "\x00\x00\x00\x08\x04\xd2\x16\x2f",
		"Redis":      "*1\r\n$4\r\nPING\r\n",
		"a megabyte": "\x80" + big,
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, g.address).(*net.TCPConn)
			go func() {
				_, _ = io.WriteString(c, sent)
				_ = c.CloseWrite()
			}()
			if got, err := io.ReadAll(c); err != nil || string(got) != sent {
				t.Errorf("%d bytes came back of %d, %v", len(got), len(sent), err)
			}
		})
	}
}

func TestWhatLooksLikeARequestIsNeverPassedThrough(t *testing.T) {
	for _, first := range []string{"GET / HTTP/1.1", "get", "*1 / HTTP/1.1", "*", "\r\nGET", "\nGET", " GET", "\tGET", "!", "PRX", "*\r", "*12345678901\r", "\x0bGET"} {
		if got := protocolOf([]byte(first)); got == speaksOther {
			t.Errorf("%q is passed through without a look at its requests", first)
		}
	}
	for first, want := range map[string]protocol{
		"": unknown, "P": unknown, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r": unknown, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": speaksHTTP2,
		"\x16\x03\x01": speaksOther, "*12\r": speaksOther, "*3": unknown, "\x00": speaksOther, "\xff": speaksOther, "{": speaksOther,
	} {
		if got := protocolOf([]byte(first)); got != want {
			t.Errorf("%q is taken for %d, want %d", first, got, want)
		}
	}
}

func TestPassedConnectionsAreLimitedByRateAndNumber(t *testing.T) {
	port := echoes(t)
	open := func(t *testing.T, address string) (net.Conn, error) {
		c := dial(t, address)
		if _, err := c.Write([]byte{0, 1}); err != nil {
			return c, err
		}
		_, err := io.ReadFull(c, make([]byte, 2))
		return c, err
	}
	t.Run("rate", func(t *testing.T) {
		e := enforcing(t, nil, func(l *quotav1.Limit) { l.Burst = 2 })
		g := start(t, port, e)
		for i := range 3 {
			if _, err := open(t, g.address); (err == nil) != (i < 2) {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	})
	t.Run("number", func(t *testing.T) {
		e := enforcing(t, nil, func(l *quotav1.Limit) { l.Algorithm, l.Burst = quotav1.Algorithm_CONCURRENCY, 1 })
		g := start(t, port, e)
		first, err := open(t, g.address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, g.address); err == nil {
			t.Error("a second connection is admitted beside the first")
		}
		_ = first.Close()
		eventually(t, "the first connection to be over", func() bool { return *one(e).InFlight == 0 })
		if _, err := open(t, g.address); err != nil {
			t.Errorf("after the first has ended: %v", err)
		}
	})
	t.Run("nothing to decide by", func(t *testing.T) {
		g := start(t, port, admission.New(admission.Options{}))
		if _, err := open(t, g.address); err == nil {
			t.Error("admitted")
		}
	})
}

func TestAPassedConnectionToAnApplicationThatIsAwayIsCut(t *testing.T) {
	g := serveAt(t, closedPort(t))
	c := tls.Client(dial(t, g.address), &tls.Config{InsecureSkipVerify: true})
	if err := c.Handshake(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAnApplicationThatSpeaksFirstOnceTheClientHas(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "hello\n") // before it has read anything
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	g := serveAt(t, l.Addr().(*net.TCPAddr).Port)
	c := dial(t, g.address)
	_, _ = c.Write([]byte{0})
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the application's end is seen as %v", err)
	}
}
