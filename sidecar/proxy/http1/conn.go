// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"io"
	"net/netip"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
)

// Conn is one client's connection and the connection to the application that belongs to it.
//
// Requests are passed on one at a time: the next one is read once the answer to the one before has been passed back, so
// that answers stay in order. Whatever has to wait is in a buffer only while it waits, and while something waits in a
// direction nothing more is read in it.
type Conn struct {
	server *Server
	client loop.Socket
	app    loop.Socket    // nil without one
	call   *upstream.Call // on the way to one
	peer   netip.Addr
	from   string // the peer, for X-Forwarded-For

	// From the client to the application.
	asking      asking
	request     framing
	in          []byte // what the client has sent and waits
	line        int    // where in it the first line begins that is not complete
	fresh       bool   // some of in has not been looked at
	blank       bool   // an empty line came before the request
	toApp       []byte // what the application has no room for
	clientReady bool
	clientHung  bool // the client has ended its direction, though not all that it sent may have been read
	clientEnded bool // and all of it has
	appDeaf     bool // the application reads no more; it may have answered before

	// From the application to the client.
	answering answering
	response  framing
	back      []byte // the part of an answer's head that is there
	backLine  int
	toClient  []byte // what the client has no room for
	appReady  bool
	appHung   bool

	// Of the request at hand.
	held     *admission.Held          // while it waits for its decision
	decided  func(admission.Decision) // ends the waiting
	head     int                      // the length of the head that waits
	sent     []byte                   // as it was sent, while it may have to be sent again
	lines    []byte                   // to be added to the answer
	ticket   Ticket                   // nil when the request owes nothing
	toHead   bool                     // the method is HEAD
	upgrade  bool                     // the client asks for another protocol
	reused   bool                     // the application's connection served requests before
	refuses  bool                     // the application closes after its answer
	last     bool                     // the connection ends after the answer
	asked    bool                     // the application has been told that no more comes
	wrote    bool                     // some of the request has been written
	ended    bool                     // both sockets are closed
	finishes bool                     // the connection is to end once it is idle
	swallow  int                      // bytes that may still be swallowed while lingering
	timer    loop.Timer               // of the client: for a head, idle, or lingering
	appTimer loop.Timer               // of the application's idle connection
}

// asking is where the client's direction is.
type asking uint8

const (
	inHead    asking = iota // between requests, or in a head
	inBody                  // passing a body on
	inRefused               // swallowing the body of a request that was denied
	holding                 // until the request is decided
	waiting                 // for the answer
	lingering               // swallowing all that comes
)

// answering is where the application's direction is.
type answering uint8

const (
	silent   answering = iota // nothing was asked
	expected                  // a head
	passing                   // a body
)

// turns is how often a connection may read before others have their turn.
const turns = 8

// The two sockets of a connection have a handler each.
type (
	clientSide Conn
	appSide    Conn
)

// Serve takes over a client's connection, with the bytes that were read from it already. from is the client's address as
// X-Forwarded-For tells it. ready tells that there may be more to read, hung that the client has ended its direction.
func (s *Server) Serve(client loop.Socket, peer netip.Addr, from string, first []byte, ready, hung bool) {
	c := &Conn{server: s, client: client, peer: peer, from: from, clientReady: ready, clientHung: hung}
	s.conns[c] = struct{}{}
	client.Handle((*clientSide)(c))
	c.ask(first)
	c.run()
}

// Ready implements loop.Handler.
func (s *clientSide) Ready(e loop.Events) {
	c := (*Conn)(s)
	if c.ended {
		return
	}
	if e&loop.Broken != 0 && c.client.Connected() != nil {
		c.abort()
		return
	}
	if e&(loop.Readable|loop.Hangup|loop.Broken) != 0 {
		c.clientReady = true
	}
	if e&(loop.Hangup|loop.Broken) != 0 {
		c.clientHung = true
	}
	if e&loop.Writable != 0 && len(c.toClient) > 0 {
		c.flushClient()
	}
	c.run()
}

// Ready implements loop.Handler.
func (s *appSide) Ready(e loop.Events) {
	c := (*Conn)(s)
	if c.ended || c.app == nil {
		return
	}
	if e&(loop.Readable|loop.Hangup|loop.Broken) != 0 {
		c.appReady = true
	}
	if e&(loop.Hangup|loop.Broken) != 0 {
		c.appHung = true
	}
	if e&loop.Writable != 0 && len(c.toApp) > 0 {
		c.flushApp()
	}
	c.run()
}

// run does what can be done. Nothing below it calls it.
func (c *Conn) run() {
	for range turns {
		done := true
		if c.fresh && c.listens() {
			c.fresh, done = false, false
			in := c.in
			c.in = nil
			n := copy(c.server.Loop.Scratch[:], in) // what asks may keep some of it
			c.server.Loop.Buffers.Free(in)
			c.ask(c.server.Loop.Scratch[:n])
		}
		if c.clientReady && c.listens() {
			done = false
			c.readClient()
		}
		if c.appReady && c.app != nil && len(c.toClient) == 0 {
			done = false
			c.readApp()
		}
		if done || c.ended {
			return
		}
	}
	c.server.Loop.Again((*clientSide)(c))
}

// listens reports whether more from the client can be dealt with.
func (c *Conn) listens() bool {
	switch c.asking {
	case inHead:
		return len(c.toClient) == 0
	case inBody:
		return c.call == nil && len(c.toApp) == 0
	case holding:
		return false
	case waiting:
		return c.clientHung && !c.clientEnded && c.in == nil // to see the end, or that something comes before it
	}
	return true
}

func (c *Conn) readClient() {
	space := c.server.space()
	if len(c.in) >= len(space) {
		space = c.server.Loop.Scratch[:]
	}
	n, err := c.client.Read(space[len(c.in):])
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.clientReady = false
	case errors.Is(err, io.EOF):
		c.clientReady = false
		c.clientEnds()
	case err != nil:
		c.abort()
	default:
		if !c.clientHung && len(c.in)+n < len(space) {
			c.clientReady = false // an event follows when there is more
		}
		if len(c.in) > 0 {
			n += copy(space, c.in)
			c.server.Loop.Buffers.Free(c.in)
			c.in = nil
		}
		c.ask(space[:n])
	}
}

func (c *Conn) readApp() {
	space := c.server.space()
	if len(c.back) > len(space)/2 {
		// A head longer than any that is usual.
		space = make([]byte, 2*len(c.back)+len(space))
	}
	n, err := c.app.Read(space[len(c.back):])
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.appReady = false
	case err != nil:
		c.appReady = false
		c.appEnds(errors.Is(err, io.EOF))
	default:
		if !c.appHung && len(c.back)+n < len(space) {
			c.appReady = false
		}
		if len(c.back) > 0 {
			n += copy(space, c.back)
			c.server.Loop.Buffers.Free(c.back)
			c.back = nil
		}
		c.answer(space[:n])
	}
}

// flushClient writes what waits for the client.
func (c *Conn) flushClient() {
	n, err := c.client.Write(c.toClient)
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.toClient = append(c.toClient[:0], c.toClient[n:]...)
	case err != nil:
		c.abort()
	default:
		c.server.Loop.Buffers.Free(c.toClient)
		c.toClient = nil
		c.clientFlushed()
	}
}

// reply writes to the client, or keeps what it has no room for.
func (c *Conn) reply(b []byte) {
	if len(c.toClient) > 0 {
		c.toClient = c.server.Loop.Buffers.Append(c.toClient, b)
		return
	}
	n, err := c.client.Write(b)
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.toClient = c.server.Loop.Buffers.Keep(b[n:])
	case err != nil:
		c.abort()
	}
}
