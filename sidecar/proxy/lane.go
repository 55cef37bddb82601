// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/netip"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/http1"
	"github.com/headgate/headgate/sidecar/proxy/http2"
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/passthrough"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
)

// lane is one loop of a proxy and the connections on it. All but its loop's Post is for the loop.
type lane struct {
	proxy     *Proxy
	loop      *loop.Loop
	patience  *loop.Timeouts
	greetings map[*greeting]struct{}
	gate      *decider
	http1     *http1.Server
	http2     *http2.Server
	relays    *passthrough.Relays
	listener  loop.Listener
	finishing bool
}

func newLane(p *Proxy) (*lane, error) {
	runner, err := loop.New(p.options.portable)
	if err != nil {
		return nil, err
	}
	l := &lane{proxy: p, loop: runner, greetings: map[*greeting]struct{}{}}
	limits := p.options.Limits
	l.patience = runner.NewTimeouts(limits.HeadTime)
	app := upstream.New(runner, p.options.AppPort)
	l.relays = passthrough.New(runner, app, limits.Memory, l.left)
	l.gate = &decider{engine: p.options.Engine, clock: p.options.Clock, observer: p.options.Observer, denials: denials{}, came: p.came}
	l.http1 = http1.NewServer(http1.Options{
		Loop:     runner,
		App:      app,
		Gate:     l.gate,
		Limits:   limits,
		Draining: p.draining.Load,
		Relays:   l.relays,
		Left:     l.left,
	})
	l.http2 = http2.NewServer(http2.Options{
		Loop:     runner,
		App:      app,
		Gate:     l.gate,
		Limits:   http2.Limits{Head: limits.Head, Streams: mostStreams, HeadTime: limits.HeadTime, Idle: limits.Idle, Linger: limits.Linger, Memory: limits.Memory},
		Draining: p.draining.Load,
		Left:     l.left,
	})
	return l, nil
}

// mostStreams is how many requests one HTTP/2 connection may have at once, if the application does not want fewer.
const mostStreams = 1000

// serve gives a connection to who knows its protocol.
func (l *lane) serve(g *greeting, spoken protocol, first []byte, ready, hung bool) {
	switch spoken {
	case speaksHTTP2:
		l.http2.Serve(g.client, g.peer, peerName(g.peer), first, ready, hung)
	case speaksOther:
		l.pass(g, first, ready, hung)
	default:
		l.http1.Serve(g.client, g.peer, peerName(g.peer), first, ready, hung)
	}
}

// pass relays a connection whose requests cannot be seen, if the limits admit it. It counts as one request, for all limits
// that look at nothing but the client's address.
func (l *lane) pass(g *greeting, first []byte, ready, hung bool) {
	d, _ := l.gate.Ask(&admission.Request{Method: http.MethodConnect, Header: http.Header{}, Peer: g.peer}, nil)
	if !d.Allowed {
		g.client.Abort()
		l.left()
		return
	}
	l.relays.Dial(passthrough.Half{Socket: g.client, Ready: ready, Hung: hung}, first, d.Ticket.End)
}

// peerName is a client's address as X-Forwarded-For tells it.
func peerName(peer netip.Addr) string {
	if !peer.IsValid() {
		return ""
	}
	return peer.String()
}

// open is how many connections are open.
func (l *lane) open() int { return len(l.greetings) + l.http1.Len() + l.http2.Len() + l.relays.Len() }

// left ends the loop once nothing is open and nothing comes.
func (l *lane) left() {
	if l.finishing && l.open() == 0 {
		l.loop.Stop()
	}
}

// drain asks the clients that can be asked between two requests to go elsewhere.
func (l *lane) drain() { l.http2.Drain() }

// finish ends every connection when it is between two requests, and the loop with the last of them.
func (l *lane) finish() {
	l.finishing = true
	l.listener.Close()
	for g := range l.greetings {
		g.close()
	}
	l.http1.Finish()
	l.http2.Finish()
	l.left()
}

// cut ends every connection at once. It returns how many there were.
func (l *lane) cut() int {
	n := l.open()
	for g := range l.greetings {
		g.close()
	}
	l.http1.Cut()
	l.http2.Cut()
	l.relays.Cut()
	return n
}
