// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"errors"
	"io"
	"net/netip"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
)

// Conn is one client's connection and the connection to the application that belongs to it.
type Conn struct {
	server *Server
	client loop.Socket
	app    loop.Socket    // nil without one
	call   *upstream.Call // on the way to one
	peer   netip.Addr
	from   string // the peer, for X-Forwarded-For

	// Bytes that have come, and those that wait to be written.
	in, back                []byte
	inFresh, backFresh      bool // they have not been looked at, or were put off
	clientWaits, appWaits   []byte
	clientReady, clientHung bool
	appReady, appHung       bool

	fromClient, fromApp reading
	toClient, toApp     *hpack.Encoder
	streams             map[uint32]*stream // by the client's numbers
	asked               map[uint32]*stream // by the application's
	last                uint32             // the highest number that the client has used
	next                uint32             // the next of the application's

	settings  settings
	window    int64 // how many bytes of DATA the client takes at present
	debt      int64 // how many more than that the application believes, since the sidecar has used some
	unsent    int64 // DATA that waits for the application to be connected
	stuck     bool  // the application's next frame has to wait for the client's window
	premature int   // requests that the client took back before they were answered
	lived     bool  // the application has been connected
	appGone   bool  // it takes no more requests
	parting   parting
	ended     bool
	swallow   int
	timer     loop.Timer
}

// reading is a direction's decoder and the block of headers that has not come whole.
type reading struct {
	decoder *hpack.Decoder
	block   []byte
	stream  uint32 // 0 between blocks
	end     bool   // the block ends the stream
	parts   int
}

// parting is how far the end of a connection has come.
type parting uint8

const (
	staying  parting = iota
	warned           // GOAWAY with the highest number: more streams are served, but the client is to open none
	parted           // GOAWAY with the last stream that is served
	swallows         // nothing is served: the rest of what comes is swallowed
)

// tableSize is the size of a compression table: HTTP/2's own default.
const tableSize = 4096

// turns is how often a connection may read before others have their turn.
const turns = 8

// The two sockets of a connection have a handler each.
type (
	clientSide Conn
	appSide    Conn
)

// Serve takes over a client's connection, with the bytes that were read from it already: the preface and what follows. from is
// the client's address as X-Forwarded-For tells it. ready tells that there may be more to read, hung that the client has
// ended its direction.
func (s *Server) Serve(client loop.Socket, peer netip.Addr, from string, first []byte, ready, hung bool) {
	c := &Conn{
		server: s, client: client, peer: peer, from: from, clientReady: ready, clientHung: hung,
		streams: map[uint32]*stream{}, window: initialWindow, settings: newSettings(),
	}
	s.conns[c] = struct{}{}
	client.Handle((*clientSide)(c))
	c.fromClient.decoder = s.newDecoder()
	c.toClient = hpack.NewEncoder(&s.block)
	s.toClient = appendSettings(s.toClient, s.ownSettings()...)
	c.settings.own++
	c.connect()
	c.in, c.inFresh = s.Loop.Buffers.Keep(first[len(Preface):]), true
	c.run()
}

func (s *Server) newDecoder() *hpack.Decoder {
	d := hpack.NewDecoder(tableSize, s.emit)
	d.SetMaxStringLength(s.Limits.Head)
	return d
}

// connect begins to connect to the application.
func (c *Conn) connect() {
	c.fromApp = reading{decoder: c.server.newDecoder()}
	c.toApp = hpack.NewEncoder(&c.server.block)
	c.asked, c.next = map[uint32]*stream{}, 1
	c.server.toApp = append(c.server.toApp, Preface...)
	c.call = c.server.App.Dial(c)
}

// Ready implements loop.Handler.
func (s *clientSide) Ready(e loop.Events) {
	c := (*Conn)(s)
	if c.ended {
		return
	}
	if e&(loop.Readable|loop.Hangup|loop.Broken) != 0 {
		c.clientReady = true
	}
	if e&(loop.Hangup|loop.Broken) != 0 {
		c.clientHung = true
	}
	if e&loop.Broken != 0 && c.client.Connected() != nil {
		c.close(loop.Socket.Abort)
		return
	}
	if e&loop.Writable != 0 && len(c.clientWaits) > 0 {
		c.write(&c.clientWaits, c.client, nil, c.clientBroken)
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
	if e&loop.Writable != 0 && len(c.appWaits) > 0 {
		c.write(&c.appWaits, c.app, nil, c.appDeaf)
	}
	c.run()
}

// run does what can be done, and writes what there is to write. Nothing below it calls it.
func (c *Conn) run() {
	for range turns {
		done := true
		c.flush()
		if c.inFresh && c.listens() {
			done, c.inFresh = false, false
			c.look(&c.in, c.clientFrames)
			c.flush()
		}
		if c.clientReady && c.listens() {
			done = false
			c.readClient()
			c.flush()
		}
		if c.backFresh && c.app != nil && len(c.clientWaits) == 0 {
			done, c.backFresh = false, false
			c.look(&c.back, c.appFrames)
			c.flush()
		}
		if c.appReady && !c.stuck && c.app != nil && len(c.clientWaits) == 0 {
			done = false
			c.readApp()
			c.flush()
		}
		if done || c.ended {
			c.rest()
			return
		}
	}
	c.server.Loop.Again((*clientSide)(c))
}

const (
	// mostWaiting is how much may wait for the client before nothing more is read from it.
	mostWaiting = 64 << 10
	// mostForApp is how much may wait for the application: all that a client may send before it has heard of it.
	mostForApp = 256 << 10
)

// listens reports whether more from the client can be dealt with.
func (c *Conn) listens() bool {
	if c.parting == swallows {
		return true
	}
	if len(c.clientWaits) > mostWaiting {
		return false
	}
	if c.call != nil {
		return len(c.appWaits) < mostForApp
	}
	return len(c.appWaits) == 0
}

// look deals with bytes that were put off.
func (c *Conn) look(kept *[]byte, deal func([]byte)) {
	b := c.server.Loop.Scratch[:copy(c.server.Loop.Scratch[:], *kept)]
	c.server.Loop.Buffers.Free(*kept)
	*kept = nil
	deal(b)
}

func (c *Conn) space() []byte {
	if c.server.Loop.Buffers.Held() > c.server.Limits.Memory {
		return c.server.Loop.Scratch[:32<<10]
	}
	return c.server.Loop.Scratch[:]
}

func (c *Conn) readClient() {
	space := c.space()
	n, err := c.client.Read(space[len(c.in):])
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.clientReady = false
	case errors.Is(err, io.EOF):
		c.close(loop.Socket.Close)
	case err != nil:
		c.close(loop.Socket.Abort)
	case c.parting == swallows:
		if c.swallow -= n; c.swallow < 0 {
			c.close(loop.Socket.Close)
		}
	default:
		c.clientReady = c.clientHung || len(c.in)+n == len(space)
		n += copy(space, c.in)
		c.server.Loop.Buffers.Free(c.in)
		c.in = nil
		c.clientFrames(space[:n])
	}
}

func (c *Conn) readApp() {
	space := c.space()
	n, err := c.app.Read(space[len(c.back):])
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.appReady = false
	case err != nil:
		c.appReady = false
		c.appFails(http2.ErrCodeNo)
	default:
		c.appReady = c.appHung || len(c.back)+n == len(space)
		n += copy(space, c.back)
		c.server.Loop.Buffers.Free(c.back)
		c.back = nil
		c.appFrames(space[:n])
	}
}

// clientFrames deals with the frames that have come whole, and keeps the rest.
func (c *Conn) clientFrames(b []byte) {
	for !c.ended && c.parting != swallows {
		f, ok, err := cutFrame(b)
		if err == nil && !ok {
			break
		}
		if err == nil {
			if err = f.check(); err == nil {
				err = c.clientFrame(&f)
			}
			b = b[len(f.raw):]
		}
		c.refuse(err)
	}
	if len(b) > 0 && !c.ended && c.parting != swallows {
		c.in = c.server.Loop.Buffers.Keep(b)
	}
}

// appFrames deals with the frames that have come whole, and keeps the rest.
func (c *Conn) appFrames(b []byte) {
	c.stuck = false
	for !c.ended && c.app != nil {
		f, ok, err := cutFrame(b)
		if err == nil && !ok {
			break
		}
		if err == nil {
			if err = f.check(); err == nil {
				err = c.appFrame(&f)
			}
		}
		if err != nil {
			c.appFails(http2.ErrCodeNo)
			return
		}
		if c.stuck {
			break
		}
		b = b[len(f.raw):]
	}
	if len(b) > 0 && !c.ended && c.app != nil {
		c.back = c.server.Loop.Buffers.Keep(b)
	}
}

// flush writes what was put together.
func (c *Conn) flush() {
	s := c.server
	toClient, toApp := s.toClient, s.toApp
	if len(toApp) > 0 && !c.ended && (c.app != nil || c.call != nil) {
		if c.call != nil {
			c.appWaits = s.Loop.Buffers.Append(c.appWaits, toApp)
		} else {
			c.write(&c.appWaits, c.app, toApp, c.appDeaf)
		}
	}
	if len(toClient) > 0 && !c.ended {
		c.write(&c.clientWaits, c.client, toClient, c.clientBroken)
	}
	s.toClient, s.toApp = toClient[:0], toApp[:0]
}

// write writes what waits and more, and keeps what there is no room for.
func (c *Conn) write(waits *[]byte, to loop.Socket, b []byte, broken func()) {
	buffers := &c.server.Loop.Buffers
	if len(*waits) > 0 {
		if len(b) > 0 {
			*waits = buffers.Append(*waits, b)
			return // an event follows
		}
		n, err := to.Write(*waits)
		switch {
		case errors.Is(err, loop.ErrAgain):
			*waits = append((*waits)[:0], (*waits)[n:]...)
		case err != nil:
			broken()
		default:
			buffers.Free(*waits)
			*waits = nil
		}
		return
	}
	n, err := to.Write(b)
	switch {
	case errors.Is(err, loop.ErrAgain):
		*waits = buffers.Keep(b[n:])
	case err != nil:
		broken()
	}
}

func (c *Conn) clientBroken() { c.close(loop.Socket.Abort) }

// appDeaf notes that the application reads no more. Reading from it will tell why.
func (c *Conn) appDeaf() {
	c.server.Loop.Buffers.Free(c.appWaits)
	c.appWaits = nil
	c.appReady, c.appHung = true, true
}
