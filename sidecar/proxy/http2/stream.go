// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// stream is a request that is under way.
type stream struct {
	id    uint32 // the client's number
	appID uint32 // the application's, 0 before it is asked

	clientEnded bool  // all of the request has come
	appEnded    bool  // all of the answer has
	answered    bool  // the head of the answer has been passed back
	refused     bool  // answered by the sidecar
	toHead      bool  // the method is HEAD
	length      int64 // what the body has to have yet, -1 when it is not told

	held *admission.Held
	kept *kept // what has come while it is held

	fields []respond.Field // to be added to the answer
	ticket Ticket
}

// kept is a request that is held, with what the client has sent since. Its size is bounded by the windows that the
// application has granted.
type kept struct {
	list     []hpack.HeaderField // the request
	bodiless bool                // it has no body
	data     []byte              // frames of DATA
	length   int                 // what they take from the connection's window
	trailers []hpack.HeaderField // nil when there are none
	window   uint32              // what the client grants for the answer
}

// open notes a new stream.
func (c *Conn) open(id uint32, ended bool, r *request) *stream {
	s := &stream{id: id, clientEnded: ended, toHead: r.method == "HEAD", length: r.length}
	c.streams[id] = s
	return s
}

// forget ends a stream, however it has ended.
func (c *Conn) forget(s *stream) {
	delete(c.streams, s.id)
	if s.appID != 0 {
		delete(c.asked, s.appID)
	}
	if s.held != nil {
		s.held.Cancel()
		s.held = nil
	}
	if s.kept != nil {
		c.credit(s.kept.length)
		s.kept = nil
	}
	if s.ticket != nil {
		s.ticket.End()
		s.ticket = nil
	}
}

// settle forgets a stream that has ended in both directions.
func (c *Conn) settle(s *stream) {
	if !s.clientEnded || !s.appEnded {
		return
	}
	c.forget(s)
	if c.server.Draining() {
		// A connection that came while clients are asked to go elsewhere has had an answer: some clients take one that is
		// told to go before for a failure to connect, and wait.
		c.leave()
	}
}
