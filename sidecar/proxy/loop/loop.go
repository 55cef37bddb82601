// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Events tell what a socket is ready for.
type Events uint8

// The events of a socket. Several may come at once, and any of them without a cause.
const (
	// Readable: there is something to read, or the end.
	Readable Events = 1 << iota
	// Writable: there is room, or a dialled socket is connected.
	Writable
	// Hangup: the peer has ended its direction. What it sent before may still be unread.
	Hangup
	// Broken: the socket has failed, or both directions have ended.
	Broken
)

// Handler is told what a socket is ready for. Edge-triggered: it is told once, and has to read until ErrAgain or a read that
// left room, and to write until ErrAgain.
type Handler interface {
	Ready(Events)
}

// ErrAgain is returned by a Socket that is not ready. An event follows when it is.
var ErrAgain = errors.New("not ready")

// Socket is one TCP connection. It never blocks.
type Socket interface {
	// Handle sets who is told of events.
	Handle(Handler)
	// Connected returns why a dialled socket is not connected, or nil. For after its first event.
	Connected() error
	// Read reads what is there: ErrAgain when nothing is, io.EOF at the end.
	Read(b []byte) (int, error)
	// Write writes what there is room for. It returns ErrAgain when that was not everything.
	Write(b []byte) (int, error)
	// CloseWrite ends the direction to the peer.
	CloseWrite()
	// Close ends both directions. No event follows. What was written is delivered, unless something is unread.
	Close()
	// Abort ends both directions so that the peer notices that something is missing.
	Abort()
}

// Loop handles the events of its sockets, one at a time.
type Loop struct {
	// Scratch is for whoever is running on the loop, until it returns.
	Scratch [64 << 10]byte
	// Out is scratch, too: for what is put together to be written.
	Out [16 << 10]byte

	// Buffers keep what has to wait.
	Buffers Buffers

	poller   poller
	base     time.Time
	now      time.Duration
	timeouts []*Timeouts
	again    []Handler // who goes on next turn
	turn     []Handler
	stopped  bool

	mu     sync.Mutex
	posted []func()
	ended  bool
}

// poller is how a system waits for sockets.
type poller interface {
	// wait handles the events that are there, or waits for some: until the timeout, or for ever when it is negative.
	wait(timeout time.Duration)
	// wake ends wait. Any goroutine may call it.
	wake()
	listen(l *net.TCPListener, accept func(Socket, netip.Addr)) (Listener, error)
	dial(address netip.AddrPort, h Handler) (Socket, error)
	close()
}

// Listener hands over the connections that come.
type Listener interface {
	// Close stops it.
	Close()
}

// Portable chooses goroutines even where the system offers better.
type Portable bool

// New returns a loop that waits for Run.
func New(portable Portable) (*Loop, error) {
	l := &Loop{base: time.Now()}
	var err error
	if l.poller, err = newPoller(l, portable); err != nil {
		return nil, err
	}
	return l, nil
}

// Now is the time of this turn, since some beginning.
func (l *Loop) Now() time.Duration { return l.now }

// Run handles events until Stop.
func (l *Loop) Run() {
	for !l.stopped {
		wait := l.nextTimeout()
		if len(l.again) > 0 {
			wait = 0
		}
		l.poller.wait(wait)
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.poller.close()
}

// begin starts a turn once the waiting is over.
func (l *Loop) begin() { l.now = time.Since(l.base) }

// finish ends a turn: what was posted, what goes on, and what has waited too long.
func (l *Loop) finish() {
	l.mu.Lock()
	posted := l.posted
	l.posted = nil
	l.mu.Unlock()
	for _, f := range posted {
		f()
	}
	l.turn, l.again = l.again, l.turn[:0]
	for i, h := range l.turn {
		l.turn[i] = nil
		h.Ready(0)
	}
	l.expire()
}

// Stop ends Run after this turn. Sockets must have been closed.
func (l *Loop) Stop() { l.stopped = true }

// Post runs a function on the loop. Any goroutine may call it. It returns false when the loop has ended, and will not run
// it then.
func (l *Loop) Post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.posted = append(l.posted, f)
	if len(l.posted) == 1 {
		l.poller.wake()
	}
	return true
}

// Again calls a handler next turn, with no event: it had more to do than was fair.
func (l *Loop) Again(h Handler) { l.again = append(l.again, h) }

// Listen accepts connections. accept gets each with the address of its other end, and has to set a handler before it
// returns, or to close it.
func (l *Loop) Listen(listener *net.TCPListener, accept func(Socket, netip.Addr)) (Listener, error) {
	return l.poller.listen(listener, accept)
}

// Dial begins to connect. The handler is told Writable or Broken when it is decided; then Connected says which.
func (l *Loop) Dial(address netip.AddrPort, h Handler) (Socket, error) {
	return l.poller.dial(address, h)
}
