// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"encoding/binary"
	"errors"
	"math"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/sidecar/admission"
)

// refuse answers what a client has done wrong. nil is nothing.
func (c *Conn) refuse(err error) {
	var ofStream streamError
	var ofConn connError
	switch {
	case errors.As(err, &ofStream):
		c.reset(ofStream.stream, ofStream.code)
	case errors.As(err, &ofConn):
		c.fail(ofConn.code)
	}
}

// reset ends a stream on both sides.
func (c *Conn) reset(id uint32, code http2.ErrCode) {
	c.server.toClient = appendNumber(c.server.toClient, http2.FrameRSTStream, id, uint32(code))
	if s := c.streams[id]; s != nil {
		c.cancel(s, code)
	}
}

// cancel ends a stream on the application's side.
func (c *Conn) cancel(s *stream, code http2.ErrCode) {
	if s.appID != 0 {
		c.server.toApp = appendNumber(c.server.toApp, http2.FrameRSTStream, s.appID, uint32(code))
	}
	c.forget(s)
}

// clientFrame deals with a frame of the client's.
func (c *Conn) clientFrame(f *frame) error {
	if open := c.fromClient.stream; open != 0 && (f.kind != http2.FrameContinuation || f.stream != open) {
		return connError{http2.ErrCodeProtocol}
	}
	if c.settings.first {
		if f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck) {
			return connError{http2.ErrCodeProtocol}
		}
		c.settings.first = false
	}
	switch f.kind {
	case http2.FrameHeaders, http2.FrameContinuation:
		return c.clientBlock(f)
	case http2.FrameData:
		return c.clientData(f)
	case http2.FrameWindowUpdate:
		return c.clientWindow(f)
	case http2.FrameRSTStream:
		return c.clientReset(f)
	case http2.FrameSettings:
		return c.clientSettings(f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			c.server.toClient = appendPing(c.server.toClient, http2.FlagPingAck, f.payload())
		} else if c.parting == warned && string(f.payload()) == partingPing {
			c.depart()
		}
	case http2.FramePushPromise:
		return connError{http2.ErrCodeProtocol}
	}
	return nil // priorities mean nothing here, and what is unknown is to be ignored
}

// find returns a stream that the client refers to, nil when it has ended. Streams that have not begun are nobody's.
func (c *Conn) find(id uint32) (*stream, error) {
	if id%2 == 0 || id > c.last && c.parting != parted {
		return nil, connError{http2.ErrCodeProtocol}
	}
	return c.streams[id], nil
}

func (c *Conn) clientWindow(f *frame) error {
	more := binary.BigEndian.Uint32(f.payload()) & (1<<31 - 1)
	if f.stream == 0 {
		if more == 0 {
			return connError{http2.ErrCodeProtocol}
		}
		if c.window += int64(more); c.window > math.MaxInt32 {
			return connError{http2.ErrCodeFlowControl}
		}
		c.backFresh = c.back != nil
		paid := min(c.debt, int64(more))
		c.debt -= paid
		if more -= uint32(paid); more > 0 && (c.app != nil || c.call != nil) {
			c.server.toApp = appendNumber(c.server.toApp, http2.FrameWindowUpdate, 0, more)
		}
		return nil
	}
	s, err := c.find(f.stream)
	if err != nil {
		return err
	}
	if more == 0 {
		return streamError{f.stream, http2.ErrCodeProtocol}
	}
	if s != nil && s.held != nil {
		s.kept.window = min(s.kept.window+more, math.MaxInt32)
	} else if s != nil && s.appID != 0 {
		c.server.toApp = appendNumber(c.server.toApp, http2.FrameWindowUpdate, s.appID, more)
	}
	return nil
}

const (
	// mostPremature is how many requests a client may take back before they are answered, if these are half of all
	// (rapid reset).
	mostPremature = 500
)

func (c *Conn) clientReset(f *frame) error {
	s, err := c.find(f.stream)
	if s == nil || err != nil {
		return err
	}
	if !s.answered {
		if c.premature++; c.premature > mostPremature && c.premature > int(c.last/4) {
			return connError{http2.ErrCodeEnhanceYourCalm}
		}
	}
	c.cancel(s, http2.ErrCode(binary.BigEndian.Uint32(f.payload())))
	return nil
}

func (c *Conn) clientData(f *frame) error {
	s, err := c.find(f.stream)
	if err != nil {
		return err
	}
	content, err := f.content()
	if err != nil {
		return err
	}
	if s == nil || s.clientEnded {
		c.giveBack(f)
		if f.stream > c.last {
			return nil // it has been told that this one is not served
		}
		return streamError{f.stream, http2.ErrCodeStreamClosed}
	}
	end := f.flags.Has(http2.FlagDataEndStream)
	if s.length >= 0 {
		if s.length -= int64(len(content)); s.length < 0 || end && s.length > 0 {
			c.giveBack(f)
			return streamError{f.stream, http2.ErrCodeProtocol}
		}
	}
	s.clientEnded = end
	switch {
	case s.held != nil:
		s.kept.data = append(s.kept.data, f.raw...)
		s.kept.length += len(f.payload())
	case s.refused:
		c.giveBack(f)
		if !end {
			// The answer is complete, and the rest is not wanted (RFC 9113, 8.1).
			return streamError{f.stream, http2.ErrCodeNo}
		}
	default:
		c.server.toApp = appendRaw(c.server.toApp, f, s.appID)
		if c.call != nil {
			c.unsent += int64(len(f.payload()))
		}
	}
	c.settle(s)
	return nil
}

// giveBack has the client send other DATA in place of what has been dropped.
func (c *Conn) giveBack(f *frame) { c.credit(len(f.payload())) }

func (c *Conn) credit(n int) {
	if n > 0 {
		c.server.toClient = appendNumber(c.server.toClient, http2.FrameWindowUpdate, 0, uint32(n))
	}
}

// mostParts is how many frames a block of headers may come in.
const mostParts = 32

// clientBlock puts the frames of a block together.
func (c *Conn) clientBlock(f *frame) error {
	r := &c.fromClient
	if f.kind == http2.FrameContinuation {
		if r.stream == 0 {
			return connError{http2.ErrCodeProtocol}
		}
		if r.parts++; r.parts > mostParts || len(r.block)+len(f.payload()) > c.server.Limits.Head {
			return connError{http2.ErrCodeEnhanceYourCalm}
		}
		r.block = append(r.block, f.payload()...)
		if !f.flags.Has(http2.FlagContinuationEndHeaders) {
			return nil
		}
		block := r.block
		r.block, r.stream = nil, 0
		return c.clientHeaders(f.stream, block, r.end)
	}
	content, err := f.content()
	if err != nil {
		return err
	}
	end := f.flags.Has(http2.FlagHeadersEndStream)
	if !f.flags.Has(http2.FlagHeadersEndHeaders) {
		r.block, r.stream, r.end, r.parts = append([]byte(nil), content...), f.stream, end, 1
		return nil
	}
	return c.clientHeaders(f.stream, content, end)
}

// decode decodes a block into the server's fields.
func (c *Conn) decode(r *reading, block []byte) error {
	c.server.fields.reset()
	c.server.tooLarge = false
	if _, err := r.decoder.Write(block); err != nil {
		return connError{http2.ErrCodeCompression}
	}
	if err := r.decoder.Close(); err != nil {
		return connError{http2.ErrCodeCompression}
	}
	return nil
}

// clientHeaders deals with a whole block: a request, or trailers.
func (c *Conn) clientHeaders(id uint32, block []byte, end bool) error {
	if err := c.decode(&c.fromClient, block); err != nil {
		return err
	}
	if s := c.streams[id]; s != nil {
		return c.clientTrailers(s, end)
	}
	if id%2 == 0 {
		return connError{http2.ErrCodeProtocol}
	}
	if id <= c.last {
		return connError{http2.ErrCodeStreamClosed}
	}
	if c.parting == parted {
		return nil // it has been told that this one is not served
	}
	c.last = id
	if len(c.streams) >= min(c.server.Limits.Streams, c.settings.streams) {
		return streamError{id, http2.ErrCodeRefusedStream}
	}
	r, ok := c.server.fields.request()
	if c.server.tooLarge {
		c.say(c.open(id, end, &r), c.server.tooLargeAnswer(r.method))
		return nil
	}
	if !ok || end && r.length > 0 {
		return streamError{id, http2.ErrCodeProtocol}
	}
	return c.decide(c.open(id, end, &r), &r)
}

func (c *Conn) clientTrailers(s *stream, end bool) error {
	switch {
	case s.clientEnded:
		return streamError{s.id, http2.ErrCodeStreamClosed}
	case !end, !c.server.fields.trailers(), s.length > 0, c.server.tooLarge:
		return streamError{s.id, http2.ErrCodeProtocol}
	}
	s.clientEnded = true
	if s.held != nil {
		s.kept.trailers = append([]hpack.HeaderField{}, c.server.fields.list...)
	} else if s.appID != 0 {
		c.server.toApp = appendBlock(c.server.toApp, c.server.encode(c.toApp, c.server.fields.list), s.appID, true)
	}
	c.settle(s)
	return nil
}

// decide has a request decided, and does what was decided.
func (c *Conn) decide(s *stream, r *request) error {
	asked := c.request(r)
	d, held := c.server.Gate.Ask(asked, func(d admission.Decision) {
		c.server.Loop.Post(func() { c.resume(s, d) })
	})
	if held != nil {
		s.held = held
		s.kept = &kept{list: append([]hpack.HeaderField(nil), c.server.fields.list...), bodiless: s.clientEnded}
		return nil
	}
	c.obey(s, asked, &d)
	return nil
}

// request is a request as the gate is asked about it.
func (c *Conn) request(r *request) *admission.Request {
	path, query := split(r.path)
	c.server.request = admission.Request{Method: r.method, Path: path, Query: query, Host: r.authority, Header: &c.server.fields, Peer: c.peer}
	return &c.server.request
}

// resume goes on with a request that had to wait.
func (c *Conn) resume(s *stream, d admission.Decision) {
	if c.ended || s.held == nil {
		return
	}
	s.held = nil
	c.server.fields.reset()
	c.server.fields.list = append(c.server.fields.list, s.kept.list...)
	r, _ := c.server.fields.request() // as before
	c.obey(s, c.request(&r), &d)
	c.run()
}

// obey does what was decided.
func (c *Conn) obey(s *stream, r *admission.Request, d *admission.Decision) {
	v := c.server.Gate.Say(r, d)
	later := s.kept
	s.kept = nil
	if !d.Allowed {
		if later != nil {
			c.credit(later.length)
		}
		c.say(s, v.Answer)
		return
	}
	s.fields, s.ticket = v.Fields, v.Ticket
	if c.appGone {
		if later != nil {
			c.credit(later.length)
		}
		c.reset(s.id, http2.ErrCodeRefusedStream)
		return
	}
	if c.app == nil && c.call == nil {
		if c.lived {
			c.unreachable(s)
			return
		}
		c.connect()
		c.introduce()
	}
	s.appID = c.next
	c.next += 2
	c.asked[s.appID] = s
	c.server.fields.addPeer(c.from)
	end := s.clientEnded && (later == nil || later.bodiless)
	c.server.toApp = appendBlock(c.server.toApp, c.server.encode(c.toApp, c.server.fields.list), s.appID, end)
	if later != nil {
		c.sendKept(s, later)
	}
}

// sendKept passes on what has come while a request was held.
func (c *Conn) sendKept(s *stream, k *kept) {
	if k.window > 0 {
		c.server.toApp = appendNumber(c.server.toApp, http2.FrameWindowUpdate, s.appID, k.window)
	}
	for rest := k.data; len(rest) > 0; {
		f, _, _ := cutFrame(rest) // whole, as it was kept
		c.server.toApp = appendRaw(c.server.toApp, &f, s.appID)
		rest = rest[len(f.raw):]
	}
	if c.call != nil {
		c.unsent += int64(k.length)
	}
	if k.trailers != nil {
		c.server.toApp = appendBlock(c.server.toApp, c.server.encode(c.toApp, k.trailers), s.appID, true)
	}
}
