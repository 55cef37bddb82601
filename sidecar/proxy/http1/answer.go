// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/passthrough"
)

// maxAnswerHead bounds the head of an answer.
const maxAnswerHead = 256 << 10

// answer deals with what the application has sent.
func (c *Conn) answer(b []byte) {
	for len(b) > 0 && !c.ended && c.app != nil {
		switch c.answering {
		case silent:
			// Nobody has asked. Some say why they close an idle connection; others have split a request in a way that
			// was not decided.
			unasked := c.asking == inBody
			c.dropApp()
			if unasked {
				c.finish()
			}
			return
		case expected:
			n := c.answerHead(b)
			if n == 0 {
				return
			}
			b = b[n:]
		case passing:
			n, err := c.response.take(b)
			c.reply(b[:n])
			if err != nil {
				c.cut()
				return
			}
			b = b[n:]
			if c.response.over() {
				c.answered()
			}
		}
	}
}

// answerHead deals with the head of an answer, or with the part of it that is there. It returns how many of the bytes it has
// dealt with; 0 when there is nothing more to do.
func (c *Conn) answerHead(b []byte) int {
	end, line := findResponse(b, c.backLine)
	if end == 0 {
		if len(b) >= maxAnswerHead {
			c.fail()
			return 0
		}
		c.back = c.server.Loop.Buffers.Keep(b)
		c.backLine = line
		return 0
	}
	c.backLine = 0
	r, err := parseResponse(b[:end], c.toHead)
	if err != nil || r.switched && !c.upgrade {
		c.fail()
		return 0
	}
	c.server.Loop.Buffers.Free(c.sent)
	c.sent = nil
	if r.interim() {
		c.reply(b[:end])
		return end
	}
	if r.switched {
		c.reply(b)
		c.switchProtocols()
		return 0
	}
	c.response = r.body
	if c.ticket != nil && c.ticket.Wants() {
		c.ticket.Answered(lines(b[:end]))
		if c.ticket.Wants() && r.body.kind == chunked {
			c.response.kept = new([]byte)
		}
	}
	n, err := c.response.take(b[end:])
	c.answering = passing
	draining := c.server.Draining()
	if draining || c.lines != nil {
		out := appendResponse(c.server.Loop.Out[:0], b[:end], c.lines, draining)
		if len(out)+n <= cap(out) {
			c.reply(append(out, b[end:end+n]...))
		} else {
			c.reply(out)
			c.reply(b[end : end+n])
		}
		c.server.Loop.Buffers.Free(c.lines)
		c.lines = nil
	} else {
		c.reply(b[:end+n])
	}
	c.refuses = !r.keep
	if draining || !r.keep {
		c.last = true
	}
	if err != nil {
		c.cut()
	} else if c.response.over() {
		c.answered()
	}
	return end + n
}

// answered goes on when all of an answer has been passed back.
func (c *Conn) answered() {
	c.answering = silent
	if c.response.kept != nil && c.ticket != nil {
		c.ticket.Answered(lines(*c.response.kept))
	}
	switch {
	case c.asking == waiting:
		c.exchanged()
	case c.refuses && c.asking == inBody:
		c.finish() // the application does not want the rest of the body
	}
}

// appEnds deals with the end of what the application sends: clean, or by an error.
func (c *Conn) appEnds(clean bool) {
	switch c.answering {
	case silent:
		unwanted := c.asking == inBody // it has answered, and does not want the rest of the body
		c.dropApp()
		if unwanted {
			c.finish()
		}
	case expected:
		if !c.again() {
			c.fail()
		}
	case passing:
		if c.response.kind == untilEnd && clean {
			c.answered()
			return
		}
		c.cut()
	}
}

// switchProtocols lets others relay what follows.
func (c *Conn) switchProtocols() {
	if c.ended {
		return
	}
	toApp := c.toApp
	if c.in != nil {
		toApp = c.server.Loop.Buffers.Append(toApp, c.in)
		c.server.Loop.Buffers.Free(c.in)
	}
	client := passthrough.Half{Socket: c.client, Waiting: c.toClient, Ready: c.clientReady, Hung: c.clientHung, Ended: c.clientEnded}
	app := passthrough.Half{Socket: c.app, Waiting: toApp, Ready: c.appReady, Hung: c.appHung}
	c.client, c.app, c.in, c.toApp, c.toClient = gone{}, nil, nil, nil, nil
	var over func()
	if c.ticket != nil {
		over, c.ticket = c.ticket.End, nil // what was upgraded is under way until it ends
	}
	c.server.Relays.Join(client, app, over)
	c.release()
}

// gone is the socket of a connection that has been handed over.
type gone struct{ loop.Socket }
