// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"encoding/binary"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// appFrame deals with a frame of the application's. An error means that it does not speak HTTP/2 as it should.
func (c *Conn) appFrame(f *frame) error {
	if open := c.fromApp.stream; open != 0 && (f.kind != http2.FrameContinuation || f.stream != open) {
		return connError{http2.ErrCodeProtocol}
	}
	switch f.kind {
	case http2.FrameHeaders, http2.FrameContinuation:
		return c.appBlock(f)
	case http2.FrameData:
		return c.appData(f)
	case http2.FrameWindowUpdate:
		more := binary.BigEndian.Uint32(f.payload()) & (1<<31 - 1)
		if f.stream == 0 {
			c.server.toClient = appendNumber(c.server.toClient, http2.FrameWindowUpdate, 0, more)
		} else if s := c.asked[f.stream]; s != nil && !s.clientEnded {
			c.server.toClient = appendNumber(c.server.toClient, http2.FrameWindowUpdate, s.id, more)
		}
	case http2.FrameRSTStream:
		if s := c.asked[f.stream]; s != nil {
			c.server.toClient = appendNumber(c.server.toClient, http2.FrameRSTStream, s.id, binary.BigEndian.Uint32(f.payload()))
			c.forget(s)
		}
	case http2.FrameSettings:
		return c.appSettings(f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			c.server.toApp = appendPing(c.server.toApp, http2.FlagPingAck, f.payload())
		}
	case http2.FrameGoAway:
		c.appLeaves(f)
	case http2.FramePushPromise:
		return connError{http2.ErrCodeProtocol} // it was told not to
	}
	return nil
}

func (c *Conn) appData(f *frame) error {
	n := int64(len(f.payload()))
	s := c.asked[f.stream]
	if s == nil {
		// The client has taken the request back. Nobody takes these bytes out of the window but the sidecar.
		if n > 0 {
			c.server.toApp = appendNumber(c.server.toApp, http2.FrameWindowUpdate, 0, uint32(n))
		}
		return nil
	}
	if n > c.window {
		c.stuck = true // until the client has paid for what the sidecar has said
		return nil
	}
	c.window -= n
	c.server.toClient = appendRaw(c.server.toClient, f, s.id)
	if f.flags.Has(http2.FlagDataEndStream) {
		s.appEnded = true
		c.settle(s)
	}
	return nil
}

// mostAnswer bounds a block of headers of the application's.
const mostAnswer = 256 << 10

// appBlock puts the frames of a block together.
func (c *Conn) appBlock(f *frame) error {
	r := &c.fromApp
	if f.kind == http2.FrameContinuation {
		if r.stream == 0 || len(r.block)+len(f.payload()) > mostAnswer {
			return connError{http2.ErrCodeProtocol}
		}
		r.block = append(r.block, f.payload()...)
		if !f.flags.Has(http2.FlagContinuationEndHeaders) {
			return nil
		}
		block := r.block
		r.block, r.stream = nil, 0
		return c.appHeaders(f.stream, block, r.end)
	}
	content, err := f.content()
	if err != nil {
		return err
	}
	end := f.flags.Has(http2.FlagHeadersEndStream)
	if !f.flags.Has(http2.FlagHeadersEndHeaders) {
		r.block, r.stream, r.end = append([]byte(nil), content...), f.stream, end
		return nil
	}
	return c.appHeaders(f.stream, content, end)
}

// appHeaders passes a whole block back: the head of an answer, or trailers.
func (c *Conn) appHeaders(id uint32, block []byte, end bool) error {
	h := &c.server.fields
	h.reset()
	if _, err := c.fromApp.decoder.Write(block); err != nil {
		return err
	}
	if err := c.fromApp.decoder.Close(); err != nil {
		return err
	}
	s := c.asked[id]
	if s == nil {
		return nil // the client has taken the request back
	}
	if status := h.status(); !s.answered && status == 0 || s.answered && !end {
		return connError{http2.ErrCodeProtocol}
	} else if !s.answered && status >= 200 {
		s.answered = true
		for _, f := range s.fields {
			h.list = append(h.list, hpack.HeaderField{Name: lower(f.Name), Value: f.Value})
		}
		s.fields = nil
		if s.ticket != nil && s.ticket.Wants() {
			s.ticket.Answered(h)
		}
	} else if s.answered && s.ticket != nil && s.ticket.Wants() {
		s.ticket.Answered(h)
	}
	c.server.toClient = appendBlock(c.server.toClient, c.server.encode(c.toClient, h.list), s.id, end)
	if end {
		s.appEnded = true
		c.settle(s)
	}
	return nil
}
