// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"bytes"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
	"github.com/headgate/headgate/sidecar/respond"
)

// Gate decides requests. The request is valid during the calls only.
type Gate interface {
	// Ask decides a request, or has it wait: then it returns what cancels the waiting, and calls then with the decision
	// later, from any goroutine.
	Ask(r *admission.Request, then func(admission.Decision)) (admission.Decision, *admission.Held)
	// Say says what a decision means for the client.
	Say(r *admission.Request, d *admission.Decision) Verdict
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
	// Head is the most bytes of a request's header list, as HTTP/2 counts them.
	Head int
	// Streams is how many requests a connection may have at once.
	Streams int
	// HeadTime is how long a header list may take from its first byte on.
	HeadTime time.Duration
	// Idle is how long a connection is kept without a request.
	Idle time.Duration
	// Linger is how long what the client still sends is swallowed at the end of a connection.
	Linger time.Duration
	// Memory is how many bytes may wait for slow peers on one loop before each of them gets less.
	Memory int
}

// Options configure a Server. All fields are required.
type Options struct {
	Loop   *loop.Loop
	App    *upstream.App
	Gate   Gate
	Limits Limits
	// Draining reports whether clients are to go elsewhere.
	Draining func() bool
	// Left is called whenever a connection has ended.
	Left func()
}

// Server is what the connections of a loop share.
type Server struct {
	Options
	headTimes, idles, lingers *loop.Timeouts
	conns                     map[*Conn]struct{}

	// Scratch of the connection at hand.
	fields   fields
	tooLarge bool
	block    bytes.Buffer
	toClient []byte
	toApp    []byte
	request  admission.Request
}

// NewServer returns a server for one loop.
func NewServer(o Options) *Server {
	return &Server{
		Options:   o,
		headTimes: o.Loop.NewTimeouts(o.Limits.HeadTime),
		idles:     o.Loop.NewTimeouts(o.Limits.Idle),
		lingers:   o.Loop.NewTimeouts(o.Limits.Linger),
		conns:     map[*Conn]struct{}{},
	}
}

// Preface is what a client begins with.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Len is how many connections there are.
func (s *Server) Len() int { return len(s.conns) }

// Drain asks every client to go elsewhere.
func (s *Server) Drain() {
	for c := range s.conns {
		c.leave()
		c.run()
	}
}

// Finish ends every connection as soon as it has no request.
func (s *Server) Finish() {
	for c := range s.conns {
		c.leave()
		c.depart()
		c.run()
	}
}

// Cut ends every connection at once.
func (s *Server) Cut() {
	for c := range s.conns {
		c.close(loop.Socket.Abort)
	}
}

// emit takes a field from a decoder.
func (s *Server) emit(f hpack.HeaderField) {
	h := &s.fields
	if h.size += len(f.Name) + len(f.Value) + 32; h.size > s.Limits.Head {
		s.tooLarge = true // what follows has to be decoded, too
		return
	}
	h.list = append(h.list, f)
}

// encode writes the list at hand as a block, valid until the next.
func (s *Server) encode(e *hpack.Encoder, list []hpack.HeaderField) []byte {
	s.block.Reset()
	for _, f := range list {
		_ = e.WriteField(f) // to memory
	}
	return s.block.Bytes()
}
