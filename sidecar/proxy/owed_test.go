// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

// enforcing is a real engine with one limit that is all this pod's.
func enforcing(t *testing.T, response *quotav1.Response, change func(*quotav1.Limit)) *admission.Engine {
	t.Helper()
	l := &quotav1.Limit{Id: "l", Name: "l", Rate: &quotav1.Rate{Requests: 1, PeriodNanoseconds: uint64(time.Hour)}, Burst: 100,
		Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_EQUAL_SHARE}
	change(l)
	e := admission.New(admission.Options{})
	s := &quotav1.Snapshot{Version: "1", Response: response, Policies: []*quotav1.Policy{{Uid: "u", Namespace: "shop", Name: "p", Limits: []*quotav1.Limit{l}}}}
	if err := e.Apply(s, []*quotav1.Share{{LimitId: "l", Units: quotav1.Whole, FillUnits: quotav1.Whole}}, limiter.Now()); err != nil {
		t.Fatal(err)
	}
	return e
}

func one(e *admission.Engine) admission.LimitState {
	return e.State(limiter.Now()).Policies[0].Limits[0]
}

func TestTheCostThatAnAnswerTellsIsSettledInEitherProtocol(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		port := appPort(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/header":
				w.Header().Set("X-Tokens", "7")
				_, _ = io.WriteString(w, "answer")
			case "/trailer":
				w.Header().Set("Trailer", "X-Other, X-Tokens")
				for range 3 {
					_, _ = io.WriteString(w, strings.Repeat("answer ", 100))
					w.(http.Flusher).Flush()
				}
				w.Header().Set("X-Other", "1")
				w.Header().Set("X-Tokens", "9")
			}
		}))
		e := enforcing(t, nil, func(l *quotav1.Limit) {
			l.Cost = &quotav1.Cost{Source: &quotav1.Cost_Response{Response: &quotav1.ResponseCost{Header: "x-tokens", Estimate: 20, MaxDebt: 10}}}
		})
		g, c := start(t, port, e), client(t, h2)
		spent := 0.0
		for _, step := range []struct {
			path string
			cost float64
		}{{"/header", 7}, {"/trailer", 9}, {"/silent", 20}} {
			response, err := c.Get(g.url(step.path))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			spent += step.cost
			want := 100 - spent
			eventually(t, fmt.Sprintf("%v tokens after %s", want, step.path), func() bool {
				left := *one(e).Balance
				return left >= want && left < want+0.5 // what an hour's rate earns meanwhile
			})
		}
	})
}

func TestARequestUnderWayIsCountedUntilItEndsHoweverItEnds(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		release := make(chan struct{})
		port := appPort(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/slow":
				<-release
			case "/breaks":
				panic(http.ErrAbortHandler)
			case "/endless":
				_, _ = io.WriteString(w, "a")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}))
		e := enforcing(t, nil, func(l *quotav1.Limit) { l.Algorithm, l.Burst = quotav1.Algorithm_CONCURRENCY, 1 })
		g, c := start(t, port, e), client(t, h2)
		free := func(after string) {
			t.Helper()
			eventually(t, "nothing under way after "+after, func() bool { return *one(e).InFlight == 0 })
		}
		answered := make(chan int, 1)
		go func() {
			response, err := c.Get(g.url("/slow"))
			if err != nil {
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
		eventually(t, "a request under way", func() bool { return *one(e).InFlight == 1 })
		response, err := c.Get(g.url("/"))
		if err != nil || response.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("the second request was answered %v, %v", response, err)
		}
		_ = response.Body.Close()
		close(release)
		if status := <-answered; status != http.StatusOK {
			t.Errorf("the first request was answered %d", status)
		}
		free("an answer")

		if response, err := c.Get(g.url("/breaks")); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		free("an application that broke off")

		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, g.url("/endless"), nil)
		if response, err = c.Do(r); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = response.Body.Close()
		free("a client that has gone")
	})
}

func TestWhatWasUpgradedIsUnderWayUntilItEnds(t *testing.T) {
	port := appPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	}))
	e := enforcing(t, nil, func(l *quotav1.Limit) { l.Algorithm, l.Burst = quotav1.Algorithm_CONCURRENCY, 1 })
	g := start(t, port, e)
	c := dial(t, g.address)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nping"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 256)
	n := 0
	for !strings.HasSuffix(string(got[:n]), "ping") {
		m, err := c.Read(got[n:])
		if err != nil {
			t.Fatalf("after %q: %v", got[:n], err)
		}
		n += m
	}
	if under := *one(e).InFlight; under != 1 {
		t.Errorf("%d under way while the connection is upgraded", under)
	}
	_ = c.Close()
	eventually(t, "nothing under way after the end", func() bool { return *one(e).InFlight == 0 })
}

func TestAllowedAnswersCarryTheFieldsThatThePolicyAsksFor(t *testing.T) {
	both(t, func(t *testing.T, h2 bool) {
		port := appPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Own", "kept")
			_, _ = io.WriteString(w, "answer")
		}))
		e := enforcing(t, &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10}, func(*quotav1.Limit) {})
		g := start(t, port, e)
		response, err := client(t, h2).Get(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		h := response.Header
		if h.Get("RateLimit-Policy") != `"p/l";q=1;w=3600` || h.Get("RateLimit") != `"p/l";r=99;t=3600` || h.Get("X-Own") != "kept" || string(body) != "answer" {
			t.Errorf("answered %v with %q", h, body)
		}
	})
}
