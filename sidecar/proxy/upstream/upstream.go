// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream decides how the application is reached: on loopback, whichever address family it listens on, with a
// short patience for one that is just starting.
package upstream

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/headgate/headgate/sidecar/proxy/loop"
)

const (
	// patience is how long a request waits for an application that does not listen yet (or not for a moment).
	patience = 500 * time.Millisecond
	// retry is how often it is tried until then.
	retry = 20 * time.Millisecond
	// limit is how long one attempt may take: an application whose queue of connections is full lets them wait.
	limit = 5 * time.Second
)

// Caller is told what became of a call.
type Caller interface {
	// Connected hands over the connection, with the events that it has been told of. The caller sets its handler.
	Connected(s loop.Socket, e loop.Events)
	// Unreachable tells why there is none.
	Unreachable(err error)
}

// App dials one application from one loop.
type App struct {
	loop    *loop.Loop
	places  [2]netip.AddrPort
	retries *loop.Timeouts
	limits  *loop.Timeouts
}

// New returns the way to an application's port.
func New(l *loop.Loop, port int) *App {
	return &App{
		loop: l,
		places: [2]netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
			netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port)),
		},
		retries: l.NewTimeouts(retry),
		limits:  l.NewTimeouts(limit),
	}
}

// Call is an attempt to connect. It ends by itself, and calls its caller once.
type Call struct {
	app     *App
	caller  Caller
	socket  loop.Socket
	place   int
	refused error // why there was no attempt at all
	first   error // what the first place said
	giveUp  time.Duration
	ended   bool
	retry   loop.Timer
	limit   loop.Timer
}

// Dial begins to connect. The caller is called later, never from inside.
func (a *App) Dial(c Caller) *Call {
	k := &Call{app: a, caller: c, giveUp: a.loop.Now() + patience}
	a.limits.Start(&k.limit, k)
	k.try()
	return k
}

// Cancel ends the call without telling the caller.
func (k *Call) Cancel() {
	k.end()
	if k.socket != nil {
		k.socket.Close()
		k.socket = nil
	}
}

func (k *Call) end() {
	k.ended = true
	k.retry.Stop()
	k.limit.Stop()
}

func (k *Call) try() {
	if k.socket, k.refused = k.app.loop.Dial(k.app.places[k.place], k); k.refused != nil {
		k.socket = nil
		k.app.loop.Again(k)
	}
}

// Ready implements loop.Handler.
func (k *Call) Ready(e loop.Events) {
	switch {
	case k.ended:
	case k.socket == nil:
		if err := k.refused; err != nil {
			k.refused = nil
			k.failed(err)
		}
	case e != 0:
		err := k.socket.Connected()
		if err == nil && e&loop.Writable != 0 {
			k.end()
			if k.place == 1 {
				k.app.places[0], k.app.places[1] = k.app.places[1], k.app.places[0] // it will be there again
			}
			k.caller.Connected(k.socket, e)
			return
		}
		k.socket.Close()
		k.socket = nil
		k.failed(err)
	}
}

func (k *Call) failed(err error) {
	if k.place == 0 {
		k.first, k.place = err, 1
		k.try()
		return
	}
	k.place = 0
	if errors.Is(k.first, syscall.ECONNREFUSED) && k.app.loop.Now() < k.giveUp {
		k.app.retries.Start(&k.retry, k)
		return
	}
	k.end()
	k.caller.Unreachable(k.first)
}

// Expired implements loop.Expirer.
func (k *Call) Expired(kind *loop.Timeouts) {
	if kind == k.app.retries {
		k.try()
		return
	}
	k.Cancel()
	k.caller.Unreachable(errTimeout)
}

var errTimeout = errors.New("the application did not accept in time")
