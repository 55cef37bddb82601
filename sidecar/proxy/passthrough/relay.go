// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package passthrough relays the bytes of connections whose protocol is not looked into: TLS, other protocols than HTTP, and
// what HTTP/1.1 connections have been upgraded to. Such a connection is decided once, as a whole.
package passthrough

import (
	"errors"
	"io"

	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
)

// Relays are those of one loop. They are not safe for concurrent use.
type Relays struct {
	loop *loop.Loop
	app  *upstream.App
	// memory is how many bytes may wait on the loop before less is read at once.
	memory int
	left   func()
	all    map[*relay]struct{}
}

// New returns no relays. left is called whenever one has ended.
func New(l *loop.Loop, app *upstream.App, memory int, left func()) *Relays {
	return &Relays{loop: l, app: app, memory: memory, left: left, all: map[*relay]struct{}{}}
}

// Len is how many there are.
func (s *Relays) Len() int { return len(s.all) }

// Cut ends all of them at once.
func (s *Relays) Cut() {
	for r := range s.all {
		r.abort()
	}
}

// Half is one connection of a relay that begins: what is to be written to it, and what is known of it.
type Half struct {
	Socket  loop.Socket
	Waiting []byte // to be written, in a buffer of the loop, or nil
	Ready   bool   // there may be something to read
	Hung    bool   // the peer has ended its direction, though not all that it sent may have been read
	Ended   bool   // and all of it has
}

// Join relays between two connections. over is called when it has ended, unless it is nil.
func (s *Relays) Join(client, app Half, over func()) {
	r := &relay{relays: s, over: over}
	s.all[r] = struct{}{}
	r.client.half(r, client)
	r.app.half(r, app)
	r.client.flush()
	r.app.flush()
	r.run()
}

// Dial relays between a client and the application, once that is connected.
func (s *Relays) Dial(client Half, first []byte, over func()) {
	r := &relay{relays: s, over: over}
	s.all[r] = struct{}{}
	r.client.half(r, client)
	r.app.relay = r
	r.app.waiting = s.loop.Buffers.Keep(first)
	r.call = s.app.Dial(r)
}

// relay is two connections.
type relay struct {
	relays      *Relays
	client, app side
	call        *upstream.Call // on the way to the application
	over        func()
	ended       bool
}

// side is one connection of a relay, and what waits to be written to it.
type side struct {
	relay   *relay
	socket  loop.Socket
	waiting []byte
	ready   bool
	hung    bool
	ended   bool // nothing more comes from it
	told    bool // it has been told that no more comes
}

func (s *side) half(r *relay, h Half) {
	*s = side{relay: r, socket: h.Socket, waiting: h.Waiting, ready: h.Ready, hung: h.Hung, ended: h.Ended}
	h.Socket.Handle(s)
}

// turns is how often a relay may read before others have their turn.
const turns = 8

// Ready implements loop.Handler.
func (s *side) Ready(e loop.Events) {
	r := s.relay
	if r.ended || s.socket == nil {
		return
	}
	if e&loop.Broken != 0 && s.socket.Connected() != nil {
		r.abort()
		return
	}
	if e&(loop.Readable|loop.Hangup|loop.Broken) != 0 {
		s.ready = true
	}
	if e&(loop.Hangup|loop.Broken) != 0 {
		s.hung = true
	}
	if e&loop.Writable != 0 {
		s.flush()
	}
	r.run()
}

// Connected implements upstream.Caller.
func (r *relay) Connected(socket loop.Socket, e loop.Events) {
	r.call = nil
	waiting := r.app.waiting
	r.app.half(r, Half{Socket: socket, Waiting: waiting, Ready: e&^loop.Writable != 0, Hung: e&(loop.Hangup|loop.Broken) != 0})
	r.app.flush()
	r.run()
}

// Unreachable implements upstream.Caller.
func (r *relay) Unreachable(error) {
	r.call = nil
	r.abort()
}

func (r *relay) run() {
	for range turns {
		up, down := r.move(&r.client, &r.app), r.move(&r.app, &r.client)
		if r.ended || !up && !down {
			return
		}
	}
	r.relays.loop.Again(&r.client)
}

// move passes on what one side has sent. It reports whether there may be more to do.
func (r *relay) move(from, to *side) bool {
	if from.ended && !to.told && len(to.waiting) == 0 && to.socket != nil {
		to.told = true
		to.socket.CloseWrite()
		if from.told && to.ended {
			r.close()
		}
	}
	if r.ended || !from.ready || from.ended || len(to.waiting) > 0 || to.socket == nil {
		return false
	}
	space := r.relays.loop.Scratch[:]
	if r.relays.loop.Buffers.Held() > r.relays.memory {
		space = space[:4<<10]
	}
	n, err := from.socket.Read(space)
	switch {
	case errors.Is(err, loop.ErrAgain):
		from.ready = false
	case errors.Is(err, io.EOF):
		from.ready, from.ended = false, true
	case err != nil:
		r.abort()
		return false
	default:
		from.ready = from.hung || n == len(space)
		to.write(space[:n])
	}
	return true
}

func (s *side) write(b []byte) {
	n, err := s.socket.Write(b)
	switch {
	case errors.Is(err, loop.ErrAgain):
		s.waiting = s.relay.relays.loop.Buffers.Keep(b[n:])
	case err != nil:
		s.relay.abort()
	}
}

func (s *side) flush() {
	if len(s.waiting) == 0 || s.relay.ended {
		return
	}
	n, err := s.socket.Write(s.waiting)
	switch {
	case errors.Is(err, loop.ErrAgain):
		s.waiting = append(s.waiting[:0], s.waiting[n:]...)
	case err != nil:
		s.relay.abort()
	default:
		s.relay.relays.loop.Buffers.Free(s.waiting)
		s.waiting = nil
	}
}

// close ends a relay of which both sides have ended.
func (r *relay) close() {
	r.end(loop.Socket.Close)
}

// abort ends both connections so that the peers notice.
func (r *relay) abort() {
	r.end(loop.Socket.Abort)
}

func (r *relay) end(how func(loop.Socket)) {
	if r.ended {
		return
	}
	r.ended = true
	if r.call != nil {
		r.call.Cancel()
	}
	for _, s := range []*side{&r.client, &r.app} {
		r.relays.loop.Buffers.Free(s.waiting)
		s.waiting = nil
		if s.socket != nil {
			how(s.socket)
		}
	}
	delete(r.relays.all, r)
	if r.over != nil {
		r.over()
	}
	r.relays.left()
}
