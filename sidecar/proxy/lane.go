// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"net/netip"

	"github.com/headgate/headgate/sidecar/proxy/http1"
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
	http1     *http1.Server
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
	limits := p.options.limits
	l.patience = runner.NewTimeouts(limits.HeadTime)
	app := upstream.New(runner, p.options.AppPort)
	l.relays = passthrough.New(runner, app, limits.Memory, l.left)
	l.http1 = http1.NewServer(http1.Options{
		Loop:     runner,
		App:      app,
		Gate:     &decider{engine: p.options.Engine, clock: p.options.Clock, observer: p.options.Observer},
		Limits:   limits,
		Draining: p.draining.Load,
		Relays:   l.relays,
		Left:     l.left,
	})
	return l, nil
}

// serve gives a connection to who knows its protocol.
func (l *lane) serve(g *greeting, spoken protocol, first []byte, ready, hung bool) {
	switch spoken {
	case speaksHTTP2:
		if conn, err := g.client.Detach(); err == nil {
			go l.proxy.serveH2(&replayed{TCPConn: conn.(*net.TCPConn), first: append([]byte(nil), first...)})
		}
		l.left()
	default:
		l.http1.Serve(g.client, g.peer, peerName(g.peer), first, ready, hung)
	}
}

func peerName(peer netip.Addr) string {
	if !peer.IsValid() {
		return ""
	}
	return peer.String()
}

// open is how many connections are open.
func (l *lane) open() int { return len(l.greetings) + l.http1.Len() + l.relays.Len() }

// left ends the loop once nothing is open and nothing comes.
func (l *lane) left() {
	if l.finishing && l.open() == 0 {
		l.loop.Stop()
	}
}

// drain asks the clients that can be asked between two requests to go elsewhere.
func (l *lane) drain() {}

// finish ends every connection when it is between two requests, and the loop with the last of them.
func (l *lane) finish() {
	l.finishing = true
	l.listener.Close()
	for g := range l.greetings {
		g.close()
	}
	l.http1.Finish()
	l.left()
}

// cut ends every connection at once. It returns how many there were.
func (l *lane) cut() int {
	n := l.open()
	for g := range l.greetings {
		g.close()
	}
	l.http1.Cut()
	l.relays.Cut()
	return n
}
