// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/sidecar/admission"
)

func TestUpgradedConnectionsAreRelayed(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-Websocket-Accept: x\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw) // echo
	}))
	c := dial(t, g.address)
	_, _ = io.WriteString(c, "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n")
	in := bufio.NewReader(c)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "websocket" || response.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Fatalf("got %+v, %v", response, err)
	}
	for _, word := range []string{"ping", "\x00\xff\n"} {
		_, _ = io.WriteString(c, word)
		back := make([]byte, len(word))
		if _, err := io.ReadFull(in, back); err != nil || string(back) != word {
			t.Fatalf("sent %q, got %q, %v", word, back, err)
		}
	}
	// The client's half-close reaches the application, whose end reaches the client.
	_ = c.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v", rest, err)
	}
}

// The application would serve any number of requests on such a connection, and nobody would decide them.
func TestAnUpgradeToHTTP2IsNotPassedOn(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	g := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r) }))
	for _, protocol := range []string{"h2c", "websocket, H2C", "HTTP/2.0", "TLS/1.2"} {
		answer := raw(t, g.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: "+protocol+"\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
		if h := asked.Load().Header; !strings.HasPrefix(answer, "HTTP/1.1 200") || h["Upgrade"] != nil || h["Http2-Settings"] != nil {
			t.Errorf("%s: the application saw %v and the client %q", protocol, h, answer)
		}
	}
}

func TestAnUpgradeIsDeniedBeforeIt(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the application was asked") }))
	g.engine.answer.Store(&admission.Decision{})
	answer := raw(t, g.address, "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 429") {
		t.Errorf("got %q", answer)
	}
}
