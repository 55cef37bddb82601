// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/netip"

	"github.com/headgate/headgate/sidecar/proxy/http2"
	"github.com/headgate/headgate/sidecar/proxy/loop"
)

// greeting is a connection that has not said which protocol it speaks.
type greeting struct {
	lane   *lane
	client loop.Socket
	peer   netip.Addr
	first  []byte
	timer  loop.Timer
}

func (l *lane) greet(client loop.Socket, peer netip.Addr) {
	g := &greeting{lane: l, client: client, peer: peer.Unmap()}
	l.greetings[g] = struct{}{}
	l.patience.Start(&g.timer, g)
	client.Handle(g)
}

// Ready implements loop.Handler.
func (g *greeting) Ready(e loop.Events) {
	if e&^loop.Writable == 0 {
		return
	}
	scratch := g.lane.loop.Scratch[:]
	hung := e&(loop.Hangup|loop.Broken) != 0
	for {
		kept := copy(scratch, g.first)
		n, err := g.client.Read(scratch[kept:])
		if errors.Is(err, loop.ErrAgain) {
			return
		}
		if err != nil {
			g.close()
			return
		}
		first := scratch[:kept+n]
		if spoken := protocolOf(first); spoken != unknown {
			g.leave()
			g.lane.serve(g, spoken, first, len(first) == len(scratch) || hung, hung)
			return
		}
		g.first = append(g.first[:0], first...) // a few bytes
	}
}

// Expired implements loop.Expirer.
func (g *greeting) Expired(*loop.Timeouts) { g.close() }

func (g *greeting) close() {
	g.leave()
	g.client.Close()
	g.lane.left()
}

func (g *greeting) leave() {
	g.timer.Stop()
	delete(g.lane.greetings, g)
}

// protocol is what a connection's first bytes tell.
type protocol int

const (
	unknown protocol = iota // more bytes are needed
	speaksHTTP1
	speaksHTTP2
)

func protocolOf(first []byte) protocol {
	n := min(len(first), len(http2.Preface))
	switch {
	case string(first[:n]) != http2.Preface[:n]:
		return speaksHTTP1 // no method is called PRI
	case n < len(http2.Preface):
		return unknown
	}
	return speaksHTTP2
}
