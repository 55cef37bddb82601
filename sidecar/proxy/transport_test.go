// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestAnApplicationThatIsAwayIsABadGateway(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		g := serveAt(t, closedPort(t))
		response, err := client(t, h2).Get(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		if _ = body(t, response); response.StatusCode != http.StatusBadGateway {
			t.Errorf("got %d, want 502", response.StatusCode)
		}
	})
}

func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestARequestWaitsForAnApplicationThatIsJustStarting(t *testing.T) {
	port := closedPort(t)
	g := serveAt(t, port)
	answer := make(chan int, 1)
	c := client(t, false)
	go func() {
		// Each attempt waits for a while; one of them meets the start.
		for range 50 {
			response, err := c.Get(g.url("/"))
			if err == nil {
				_ = response.Body.Close()
				answer <- response.StatusCode
				return
			}
		}
		answer <- 0
	}()
	eventually(t, "the first attempt", func() bool { return g.engine.asked.Load() != nil })
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Skip("somebody else took the port")
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-ended }()
	if got := <-answer; got != http.StatusNotFound {
		t.Errorf("got %d, want the application's answer", got)
	}
}

func TestAnApplicationOnIPv6IsReached(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-ended }()
	g := serveAt(t, l.Addr().(*net.TCPAddr).Port)
	response, err := client(t, false).Get(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	if _ = body(t, response); response.StatusCode != http.StatusNotFound {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestAnApplicationThatBreaksOffBreaksTheAnswer(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		panic(http.ErrAbortHandler)
	}))
	response, err := client(t, false).Get(g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut answer reads as %v, want the client to see that it is cut", err)
	}
}
