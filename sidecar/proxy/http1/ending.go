// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import "github.com/headgate/headgate/sidecar/proxy/loop"

// exchanged goes on when a request has been answered.
func (c *Conn) exchanged() {
	c.endTicket()
	buffers := &c.server.Loop.Buffers
	buffers.Free(c.sent)
	buffers.Free(c.lines)
	c.sent, c.lines = nil, nil
	c.wrote, c.upgrade, c.refuses = false, false, false
	if c.last || c.finishes || c.appDeaf || c.clientEnded && c.in == nil {
		c.finish()
		return
	}
	c.asking, c.answering = inHead, silent
	c.server.idles.Start(&c.timer, c)
	if c.app != nil {
		c.server.appIdles.Start(&c.appTimer, c)
	}
}

// finishSoon ends the connection as soon as it is between two requests: at once, if it is.
func (c *Conn) finishSoon() {
	c.finishes = true
	if c.asking == inHead && c.in == nil && len(c.toClient) == 0 {
		c.close()
	}
}

// maxSwallowed is how much is swallowed while lingering.
const maxSwallowed = 512 << 10

// finish ends the connection so that the client gets all that was written for it.
func (c *Conn) finish() {
	if c.ended || c.asking == lingering {
		return
	}
	c.dropApp()
	c.endTicket()
	c.server.Loop.Buffers.Free(c.in)
	c.in, c.fresh = nil, false
	c.asking = lingering
	c.swallow = maxSwallowed
	c.timer.Stop()
	if len(c.toClient) == 0 {
		c.clientFlushed()
	}
}

// clientFlushed goes on when the client has got all that was written for it.
func (c *Conn) clientFlushed() {
	switch {
	case c.asking == lingering && c.clientEnded:
		c.close()
	case c.asking == lingering:
		c.client.CloseWrite()
		c.server.lingers.Start(&c.timer, c)
	}
}

// cut ends an answer that has begun and cannot be completed, so that the client notices.
func (c *Conn) cut() {
	if c.response.kind == untilEnd && len(c.toClient) == 0 {
		c.abort() // a proper end would look like the answer's
		return
	}
	c.finish()
}

// close ends the connection. What was written is delivered, unless something is unread.
func (c *Conn) close() {
	if !c.ended {
		c.release()
		c.client.Close()
	}
}

// abort ends the connection at once: the client has gone, or must see that something is missing.
func (c *Conn) abort() {
	if !c.ended {
		c.release()
		c.client.Abort()
	}
}

func (c *Conn) release() {
	c.ended = true
	if c.held != nil {
		c.held.Cancel()
	}
	c.dropApp()
	c.endTicket()
	buffers := &c.server.Loop.Buffers
	for _, b := range [][]byte{c.in, c.toClient, c.lines} {
		buffers.Free(b)
	}
	c.in, c.toClient, c.lines = nil, nil, nil
	c.timer.Stop()
	delete(c.server.conns, c)
	c.server.Left()
}

// endTicket tells that the request is over, however it ended.
func (c *Conn) endTicket() {
	if c.ticket != nil {
		c.ticket.End()
		c.ticket = nil
	}
}

// Expired implements loop.Expirer.
func (c *Conn) Expired(kind *loop.Timeouts) {
	switch kind {
	case c.server.appIdles:
		if c.answering == silent && c.asking == inHead {
			c.dropApp()
		}
	case c.server.headTimes:
		c.refuse(errSlow)
	default: // idle, or lingering for long enough
		c.close()
	}
}
