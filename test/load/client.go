// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
)

// Connections says how a client treats its connections.
type Connections int

const (
	// New opens a connection for each request: each may reach another pod.
	New Connections = iota
	// Renewed keeps a connection for some requests, then takes another one, as clients with a pool do.
	Renewed
	// Pinned keeps one connection for as long as the server lets it.
	Pinned
)

// renewAfter is how many requests a Renewed client sends on one connection.
const renewAfter = 20

// Client sends requests one after the other.
type Client struct {
	// Key goes into the header X-API-Key; empty = no header.
	Key string
	// Rate is requests per second.
	Rate float64
	// Connections is how connections are used.
	Connections Connections
	// HTTP2 speaks HTTP/2 without TLS, in place of HTTP/1.1.
	HTTP2 bool
	// Path is requested; empty = "/".
	Path string
	// Timeout of one request; 0 = 5 s.
	Timeout time.Duration
}

// Answer is what became of one request.
type Answer struct {
	Start, End time.Time
	Key        string
	// Status is 0 when there was no answer: then Err says why.
	Status int
	Err    error
	// RetryAfter is the header of a denial, in seconds; -1 when it is absent or no number.
	RetryAfter int
	// Pod answered last on the connection of this request; empty on a connection that no pod has named itself on. Denials
	// name no pod.
	Pod string
}

// Admitted reports whether the app has answered.
func (a *Answer) Admitted() bool { return a.Err == nil && a.Status < 300 }

// Denied reports whether a limit refused the request.
func (a *Answer) Denied() bool { return a.Err == nil && a.Status == http.StatusTooManyRequests }

// Failed reports whether the request was lost, or answered by an error that is no denial.
func (a *Answer) Failed() bool { return !a.Admitted() && !a.Denied() }

// sender is a client at work.
type sender struct {
	Client
	base string
	http *http.Client
	conn net.Conn // of the last request
	pod  string   // that answered on conn
	sent int      // on conn
}

func newSender(c Client, base string) *sender {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!c.HTTP2)
	protocols.SetUnencryptedHTTP2(c.HTTP2)
	return &sender{Client: c, base: base, http: &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return Dial(ctx, address, 3*time.Second)
		},
		MaxConnsPerHost: 1,
		Protocols:       protocols,
	}}}
}

// send sends one request. It is a POST, since Go's client repeats a GET that met a closed connection, and so would hide
// what is counted here.
func (s *sender) send(ctx context.Context) Answer {
	a := Answer{Start: time.Now(), Key: s.Key}
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		connected = true
		if info.Conn != s.conn {
			s.conn, s.pod, s.sent = info.Conn, "", 0
		}
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+s.Path, nil)
	if err != nil {
		a.Err, a.End = err, time.Now()
		return a
	}
	if s.Key != "" {
		req.Header.Set("X-API-Key", s.Key)
	}
	s.sent++
	s.roundTrip(req, &a)
	if s.Connections == New || s.Connections == Renewed && s.sent >= renewAfter {
		// The client ends the connection, so that TIME_WAIT stays with it. In a pod, behind an address translation that picks
		// its ports at random, a later connection would meet it sooner or later, and hang.
		s.http.CloseIdleConnections()
	}
	if a.End = time.Now(); connected {
		a.Pod = s.pod
	}
	return a
}

func (s *sender) roundTrip(req *http.Request, a *Answer) {
	resp, err := s.http.Do(req)
	if err != nil {
		a.Err = err
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		a.Err = err
		return
	}
	a.Status = resp.StatusCode
	if a.Admitted() {
		s.pod = strings.TrimSpace(string(body))
	}
	a.RetryAfter = -1
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = seconds
	}
}
