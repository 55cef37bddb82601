// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"net/netip"
	"time"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/passthrough"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
	"github.com/headgate/headgate/sidecar/respond"
)

// Gate decides requests. The head, and all strings that come from it, are valid during the calls only.
type Gate interface {
	// Decide decides a request, or has it wait: then it returns what cancels the waiting, and calls then with the decision
	// later, from any goroutine.
	Decide(h *Head, peer netip.Addr, then func(admission.Decision)) (admission.Decision, *admission.Held)
	// Answer says what a decision means for the client.
	Answer(h *Head, d *admission.Decision, v *Verdict)
}

// Verdict is what a Gate says of a request.
type Verdict struct {
	// Answer is for the client, when the request is not allowed.
	Answer respond.Answer
	// Fields are added to the application's answer, when it is.
	Fields []respond.Field
	// Ticket is what the request owes until it is over, when it is allowed; nil when nothing.
	Ticket Ticket
}

// Ticket is told of the application's answer and of the request's end; *admission.Ticket says how.
type Ticket interface {
	Wants() bool
	Answered(admission.Header)
	End()
}

// Limits bound what a client may make the sidecar hold. All are required.
type Limits struct {
	// Head is the most bytes of a request's head, at most 64 KiB, and Fields the most lines of it.
	Head, Fields int
	// HeadTime is how long a head may take from its first byte on (slowloris).
	HeadTime time.Duration
	// Idle is how long a connection is kept between requests.
	Idle time.Duration
	// AppIdle is how long the application's connection is kept between requests.
	AppIdle time.Duration
	// Linger is how long what the client still sends is swallowed after the last answer. A connection closed before would
	// be reset, and the client might lose the answer.
	Linger time.Duration
	// Memory is how many bytes may wait for slow peers on one loop before each of them gets less.
	Memory int
}

// DefaultLimits are fit for a sidecar.
func DefaultLimits() Limits {
	return Limits{
		Head:     60 << 10, // as Envoy
		Fields:   256,
		HeadTime: 10 * time.Second,
		// Longer than load balancers keep idle connections (600 s on Google's), so that they close first and no request
		// meets a closing connection.
		Idle: 620 * time.Second,
		// Dialling loopback costs little; a request written to a connection that the application is just closing costs
		// that request. Applications close idle connections after 2 s (gunicorn) or 5 s (Node) and more.
		AppIdle: time.Second,
		Linger:  2 * time.Second,
		Memory:  16 << 20,
	}
}

// Options configure a Server. All fields are required.
type Options struct {
	Loop   *loop.Loop
	App    *upstream.App
	Gate   Gate
	Limits Limits
	// Draining reports whether clients are to go elsewhere: then every answer is the last of its connection.
	Draining func() bool
	// Relays take over what has been upgraded to another protocol.
	Relays *passthrough.Relays
	// Left is called whenever a connection has ended.
	Left func()
}

// Server is what the connections of a loop share.
type Server struct {
	Options
	headTimes, idles, appIdles, lingers *loop.Timeouts
	conns                               map[*Conn]struct{}

	// Scratch of the request at hand.
	head    Head
	verdict Verdict
	date    date
}

// NewServer returns a server for one loop.
func NewServer(o Options) *Server {
	o.Limits.Head = min(o.Limits.Head, mostHead)
	return &Server{
		Options:   o,
		conns:     map[*Conn]struct{}{},
		headTimes: o.Loop.NewTimeouts(o.Limits.HeadTime),
		idles:     o.Loop.NewTimeouts(o.Limits.Idle),
		appIdles:  o.Loop.NewTimeouts(o.Limits.AppIdle),
		lingers:   o.Loop.NewTimeouts(o.Limits.Linger),
	}
}

// mostHead leaves room to read one more byte.
const mostHead = 64<<10 - 1

// Len is how many connections there are.
func (s *Server) Len() int { return len(s.conns) }

// Finish ends every connection as soon as it is between two requests.
func (s *Server) Finish() {
	for c := range s.conns {
		c.finishSoon()
	}
}

// Cut ends every connection at once.
func (s *Server) Cut() {
	for c := range s.conns {
		c.abort()
	}
}

// space is where to read to. When much waits already, little is read at once: what is read may have to wait, too.
func (s *Server) space() []byte {
	if s.Loop.Buffers.Held() > s.Limits.Memory {
		return s.Loop.Scratch[:4<<10]
	}
	return s.Loop.Scratch[:]
}
