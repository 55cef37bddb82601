// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"

	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/respond"
)

// forward passes a request on, with as much of its body as came with it. It returns how much of body that was.
func (c *Conn) forward(h *Head, v *Verdict, body []byte) int {
	n, err := c.request.take(body)
	if err != nil {
		c.refuse(err)
		return n
	}
	if len(v.Fields) > 0 {
		c.lines = c.server.Loop.Buffers.Keep(respond.AppendFields(c.server.Loop.Out[:0], v.Fields))
	}
	out := h.appendForwarded(c.server.Loop.Out[:0], c.from)
	c.upgrade = h.upgrade >= 0
	c.answering, c.asking = expected, inBody
	whole := c.request.over()
	if len(out)+n <= cap(out) {
		out = append(out, body[:n]...)
		body = nil
	} else {
		body = body[:n]
	}
	c.appTimer.Stop()
	c.reused = c.app != nil
	if c.app == nil {
		c.call = c.server.App.Dial(c)
	} else if whole && len(body) == 0 && idempotent(h.Method) {
		// The application may be closing the connection.
		c.sent = c.server.Loop.Buffers.Keep(out)
	}
	c.send(out)
	if len(body) > 0 {
		c.send(body)
	}
	c.bodySent()
	return n
}

// idempotent reports whether a request may be sent a second time if nobody knows what became of the first (RFC 9110, 9.2.2).
func idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

// send writes to the application, or keeps what it has no room for.
func (c *Conn) send(b []byte) {
	if len(b) == 0 || c.appDeaf {
		return
	}
	if c.call != nil || len(c.toApp) > 0 {
		c.toApp = c.server.Loop.Buffers.Append(c.toApp, b)
		return
	}
	n, err := c.app.Write(b)
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.toApp = c.server.Loop.Buffers.Keep(b[n:])
	case err != nil:
		if n == 0 && !c.wrote && c.reused && c.sent == nil && c.request.over() {
			c.sent = c.server.Loop.Buffers.Keep(b) // nothing of it has arrived
		}
		c.deaf()
	}
	c.wrote = true
}

// deaf notes that the application reads no more. What it has said before still counts.
func (c *Conn) deaf() {
	c.appDeaf, c.appReady = true, true
	c.server.Loop.Buffers.Free(c.toApp)
	c.toApp = nil
}

// flushApp writes what waits for the application.
func (c *Conn) flushApp() {
	n, err := c.app.Write(c.toApp)
	switch {
	case errors.Is(err, loop.ErrAgain):
		c.toApp = append(c.toApp[:0], c.toApp[n:]...)
	case err != nil:
		c.deaf()
	default:
		c.server.Loop.Buffers.Free(c.toApp)
		c.toApp = nil
		c.endApp()
	}
}

// bodySent goes on when all of a request has been passed on.
func (c *Conn) bodySent() {
	if c.asking != inBody || !c.request.over() {
		return
	}
	c.asking = waiting
	if c.answering == silent {
		c.exchanged() // the answer was there before
		return
	}
	c.endApp()
}

// endApp tells the application that the client sends no more, once it has all.
func (c *Conn) endApp() {
	if c.clientEnded && c.in == nil && c.app != nil && len(c.toApp) == 0 && !c.asked {
		c.asked, c.last = true, true
		c.app.CloseWrite()
	}
}

// Connected implements upstream.Caller.
func (c *Conn) Connected(s loop.Socket, e loop.Events) {
	c.call = nil
	c.app = s
	c.appReady = e&^loop.Writable != 0
	c.appHung = e&(loop.Hangup|loop.Broken) != 0
	s.Handle((*appSide)(c))
	if len(c.toApp) > 0 {
		c.flushApp()
	}
	c.run()
}

// Unreachable implements upstream.Caller.
func (c *Conn) Unreachable(error) {
	c.call = nil
	c.fail()
	c.run()
}

// fail answers for an application that is away, or that has answered with what is no answer: 502, which nobody takes for a
// denial.
func (c *Conn) fail() {
	c.dropApp()
	if c.asking != waiting || c.server.Draining() {
		c.last = true
	}
	c.reply(c.server.plain(int(errGateway), "headgate: the application did not answer", c.toHead, c.last))
	c.exchanged()
}

// again sends a request again that met a connection which the application was closing. It reports whether it could.
func (c *Conn) again() bool {
	if c.sent == nil || c.back != nil || c.answering != expected || c.asking != waiting {
		return false
	}
	sent := c.sent
	c.sent = nil
	c.dropApp()
	c.toApp = sent
	c.answering, c.reused = expected, false
	c.call = c.server.App.Dial(c)
	return true
}

// dropApp ends the connection to the application, if there is one.
func (c *Conn) dropApp() {
	if c.call != nil {
		c.call.Cancel()
		c.call = nil
	}
	if c.app != nil {
		c.app.Close()
		c.app = nil
	}
	c.appTimer.Stop()
	buffers := &c.server.Loop.Buffers
	buffers.Free(c.toApp)
	buffers.Free(c.back)
	buffers.Free(c.sent)
	c.toApp, c.back, c.sent = nil, nil, nil
	c.backLine = 0
	c.appReady, c.appHung, c.appDeaf, c.asked = false, false, false, false
	c.answering = silent
}
