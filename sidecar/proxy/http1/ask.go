// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"net/http"

	"github.com/headgate/headgate/sidecar/admission"
)

// ask deals with what the client has sent.
func (c *Conn) ask(b []byte) {
	for len(b) > 0 && !c.ended {
		switch c.asking {
		case inHead:
			if len(c.toClient) > 0 { // the client sends requests and reads no answers
				c.keep(b, true)
				return
			}
			n := c.askHead(b)
			if n == 0 {
				return
			}
			b = b[n:]
		case inBody:
			if len(c.toApp) > 0 || c.call != nil {
				c.keep(b, true)
				return
			}
			n, err := c.request.take(b)
			c.send(b[:n])
			if err != nil {
				c.refuse(err)
				return
			}
			b = b[n:]
			c.bodySent()
		case inRefused:
			n, err := c.request.take(b)
			if err != nil {
				c.finish()
				return
			}
			b = b[n:]
			if c.request.over() {
				c.exchanged()
			}
		case waiting, holding:
			c.keep(b, true)
			return
		case lingering:
			if c.swallow -= len(b); c.swallow < 0 {
				c.close()
			}
			return
		}
	}
}

// keep keeps what the client has sent for later. fresh tells that it has not been looked at.
func (c *Conn) keep(b []byte, fresh bool) {
	c.in = c.server.Loop.Buffers.Append(c.in, b)
	c.fresh = fresh
}

// askHead deals with a head, or with the part of it that is there. It returns how many of the bytes it has dealt with; 0
// when there is nothing more to do.
func (c *Conn) askHead(b []byte) int {
	if c.line == 0 && b[0] == '\r' && len(b) > 1 && b[1] == '\n' {
		return c.emptyLine()
	}
	limits := &c.server.Limits
	end, line, err := findHead(b, c.line)
	switch {
	case err != nil:
	case end > limits.Head, end == 0 && len(b) >= limits.Head:
		err = errTooLarge
	case end == 0 && len(b) > 4<<10 && c.server.Loop.Buffers.Held() > 2*limits.Memory:
		err = errBusy
	case end == 0:
		c.keep(b, false)
		c.line = line
		if c.clientEnded {
			c.finish()
		} else if !c.server.headTimes.Runs(&c.timer) {
			c.server.headTimes.Start(&c.timer, c)
		}
		return 0
	}
	h := &c.server.head
	if err == nil {
		err = h.parse(b[:end], limits.Fields)
	}
	if err != nil {
		c.refuse(err)
		return 0
	}
	c.line = 0
	c.timer.Stop()
	return c.decide(h, b, end)
}

// emptyLine swallows one empty line before a request: old clients end a body with one more than they count (RFC 9112, 2.2).
func (c *Conn) emptyLine() int {
	if c.blank {
		c.refuse(errSyntax)
		return 0
	}
	c.blank = true
	return 2
}

// decide has a request decided and does what was decided. It returns how many bytes it has dealt with; 0 when the request
// has to wait.
func (c *Conn) decide(h *Head, b []byte, end int) int {
	if c.decided == nil {
		c.decided = func(d admission.Decision) { c.server.Loop.Post(func() { c.resume(d) }) }
	}
	d, held := c.server.Gate.Decide(h, c.peer, c.decided)
	if held != nil {
		c.keep(b, false)
		c.asking, c.held, c.head = holding, held, end
		return 0
	}
	return c.obey(h, &d, b, end)
}

// resume goes on with a request that had to wait.
func (c *Conn) resume(d admission.Decision) {
	if c.ended || c.asking != holding {
		return
	}
	c.asking, c.held = inHead, nil
	b := c.server.Loop.Scratch[:copy(c.server.Loop.Scratch[:], c.in)]
	c.server.Loop.Buffers.Free(c.in)
	c.in = nil
	h := &c.server.head
	if err := h.parse(b[:c.head], c.server.Limits.Fields); err != nil {
		c.refuse(err)
		return
	}
	n := c.obey(h, &d, b, c.head)
	c.ask(b[n:])
	c.run()
}

// obey does what was decided. It returns how many bytes belong to the head and to what was sent on with it.
func (c *Conn) obey(h *Head, d *admission.Decision, b []byte, end int) int {
	v := &c.server.verdict
	*v = Verdict{}
	c.server.Gate.Answer(h, d, v)
	c.blank = false
	c.toHead = h.Method == http.MethodHead
	c.last = !h.keep
	c.request = h.body
	if !d.Allowed {
		c.deny(h, v)
		return end
	}
	c.ticket = v.Ticket
	return end + c.forward(h, v, b[end:])
}

// mostDiscarded is how much of the body of a denied request is swallowed to keep the connection.
const mostDiscarded = 64 << 10

// deny answers a request that is not passed on.
func (c *Conn) deny(h *Head, v *Verdict) {
	body := &c.request
	if !body.over() && (h.expect || body.kind != counted || body.left > mostDiscarded) || h.Minor == 0 || c.server.Draining() || c.finishes {
		c.last = true
	}
	out := v.Answer.Append(c.server.Loop.Out[:0], c.last)
	c.reply(c.server.dated(out))
	if body.over() || c.last {
		c.exchanged()
		return
	}
	c.asking = inRefused
}

// refuse answers a request that cannot be read, and ends the connection.
func (c *Conn) refuse(err error) {
	status := errSyntax
	_ = errors.As(err, &status)
	if c.answering != passing && status != errForeign { // else an answer is on its way already, and is cut
		c.reply(c.server.plain(int(status), http.StatusText(int(status)), false, true))
	}
	c.finish()
}

// clientEnds deals with the end of what the client sends.
func (c *Conn) clientEnds() {
	c.clientEnded = true
	switch c.asking {
	case inHead, inRefused:
		c.finish()
	case inBody:
		c.last = true
		c.asking = waiting // the application sees that something is missing
		c.endApp()
	case waiting:
		c.endApp()
	case lingering:
		if len(c.toClient) == 0 {
			c.close()
		}
	}
}
