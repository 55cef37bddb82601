// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/sidecar/proxy/loop"
)

const (
	// allStreams is the number in a GOAWAY that says nothing yet of what is served (RFC 9113, 6.8).
	allStreams = 1<<31 - 1
	// partingPing comes back once the client has read the first GOAWAY, and with it all streams that it opened before.
	partingPing = "headgate"
	// maxSwallowed is how much is swallowed at the end.
	maxSwallowed = 512 << 10
)

// leave asks the client to open no more streams, and serves those that it has opened meanwhile.
func (c *Conn) leave() {
	if c.ended || c.parting != staying {
		return
	}
	c.parting = warned
	c.server.toClient = appendGoAway(c.server.toClient, allStreams, http2.ErrCodeNo)
	c.server.toClient = appendPing(c.server.toClient, 0, []byte(partingPing))
}

// depart tells the client which streams are served. The connection ends with the last of them.
func (c *Conn) depart() {
	if c.ended || c.parting != warned {
		return
	}
	c.parting = parted
	c.server.toClient = appendGoAway(c.server.toClient, c.last, http2.ErrCodeNo)
}

// rest ends a connection that has nothing more to do, and watches over one that waits.
func (c *Conn) rest() {
	if c.ended {
		return
	}
	switch s := c.server; {
	case c.parting == swallows:
		if len(c.clientWaits) == 0 && !s.lingers.Runs(&c.timer) {
			c.client.CloseWrite()
			s.lingers.Start(&c.timer, c)
		}
	case c.parting == parted && len(c.streams) == 0:
		c.finish()
		c.rest()
	case c.fromClient.stream != 0 || len(c.in) > 3 && (http2.FrameType(c.in[3]) == http2.FrameHeaders || http2.FrameType(c.in[3]) == http2.FrameContinuation) || c.settings.first:
		if !s.headTimes.Runs(&c.timer) {
			s.headTimes.Start(&c.timer, c)
		}
	case len(c.streams) == 0:
		if !s.idles.Runs(&c.timer) {
			s.idles.Start(&c.timer, c)
		}
	default:
		c.timer.Stop()
	}
}

// fail ends the connection for what the client has done.
func (c *Conn) fail(code http2.ErrCode) {
	c.server.toClient = appendGoAway(c.server.toClient, c.last, code)
	c.finish()
}

// finish ends the connection so that the client gets all that was written for it.
func (c *Conn) finish() {
	if c.ended || c.parting == swallows {
		return
	}
	c.parting = swallows
	c.swallow = maxSwallowed
	c.timer.Stop()
	for _, s := range c.streams {
		c.forget(s)
	}
	c.dropApp()
	c.server.Loop.Buffers.Free(c.in)
	c.in, c.inFresh = nil, false
}

func (c *Conn) dropApp() {
	if c.call != nil {
		c.call.Cancel()
		c.call = nil
	}
	if c.app != nil {
		c.app.Close()
		c.app = nil
	}
	c.server.toApp = c.server.toApp[:0]
	c.server.Loop.Buffers.Free(c.appWaits)
	c.server.Loop.Buffers.Free(c.back)
	c.appWaits, c.back, c.backFresh, c.stuck = nil, nil, false, false
	c.appReady, c.appHung = false, false
}

// close ends the connection, in a way.
func (c *Conn) close(how func(loop.Socket)) {
	if c.ended {
		return
	}
	c.ended = true
	for _, s := range c.streams {
		c.forget(s)
	}
	c.dropApp()
	c.server.toClient = c.server.toClient[:0]
	c.server.Loop.Buffers.Free(c.in)
	c.server.Loop.Buffers.Free(c.clientWaits)
	c.in, c.clientWaits = nil, nil
	c.timer.Stop()
	how(c.client)
	delete(c.server.conns, c)
	c.server.Left()
}

// Expired implements loop.Expirer.
func (c *Conn) Expired(kind *loop.Timeouts) {
	switch kind {
	case c.server.lingers:
		c.close(loop.Socket.Close)
		return
	case c.server.headTimes:
		c.fail(http2.ErrCodeEnhanceYourCalm)
	default:
		c.fail(http2.ErrCodeNo)
	}
	c.run()
}

// Connected implements upstream.Caller.
func (c *Conn) Connected(s loop.Socket, e loop.Events) {
	c.call = nil
	c.app, c.lived = s, true
	c.appReady = e&^loop.Writable != 0
	c.appHung = e&(loop.Hangup|loop.Broken) != 0
	c.unsent = 0
	s.Handle((*appSide)(c))
	if len(c.appWaits) > 0 {
		c.write(&c.appWaits, c.app, nil, c.appDeaf)
	}
	c.run()
}

// Unreachable implements upstream.Caller.
func (c *Conn) Unreachable(error) {
	c.call = nil
	c.dropApp()
	// What the application would have said.
	for ; c.settings.asked > 0; c.settings.asked-- {
		c.server.toClient = appendSettingsAck(c.server.toClient)
	}
	c.settings.unasked = 0
	c.credit(int(c.unsent))
	c.unsent = 0
	for _, s := range c.asked {
		c.unreachable(s)
	}
	c.run()
}

// appFails deals with the end of the application's connection. The client's ends with it: what the two have granted each
// other does not hold for another one.
func (c *Conn) appFails(code http2.ErrCode) {
	c.dropApp()
	for _, s := range c.asked {
		if s.answered {
			c.server.toClient = appendNumber(c.server.toClient, http2.FrameRSTStream, s.id, uint32(http2.ErrCodeInternal))
			c.forget(s)
		} else {
			c.unreachable(s)
		}
	}
	if code != http2.ErrCodeNo {
		c.fail(code)
		return
	}
	c.leave()
	c.depart()
}

// appLeaves deals with the application's GOAWAY: what it says of its streams is said to the client of its own.
func (c *Conn) appLeaves(f *frame) {
	last := binary.BigEndian.Uint32(f.payload()) & (1<<31 - 1)
	code := http2.ErrCode(binary.BigEndian.Uint32(f.payload()[4:]))
	if code != http2.ErrCodeNo {
		c.appFails(code)
		return
	}
	c.leave()
	if last == allStreams {
		return
	}
	for id, s := range c.asked {
		if id > last {
			s.appID = 0
			delete(c.asked, id)
			c.server.toClient = appendNumber(c.server.toClient, http2.FrameRSTStream, s.id, uint32(http2.ErrCodeRefusedStream))
			c.forget(s)
		}
	}
	c.appGone = true
}
