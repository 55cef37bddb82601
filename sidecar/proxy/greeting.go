// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/netip"

	"golang.org/x/net/http/httpguts"

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
	l.proxy.came()
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
	speaksOther // TLS, or anything that is not HTTP
)

// protocolOf reads a connection's first bytes. Only what no server could take for a request, however lenient, is another
// protocol: nobody decides its requests.
func protocolOf(first []byte) protocol {
	n := min(len(first), len(http2.Preface))
	switch {
	case n > 0 && !mayBeginRequest(first[0]):
		return speaksOther
	case n > 0 && first[0] == '*':
		return maybeRedis(first)
	case string(first[:n]) != http2.Preface[:n]:
		return speaksHTTP1 // no method is called PRI
	case n < len(http2.Preface):
		return unknown
	}
	return speaksHTTP2
}

// mayBeginRequest reports whether a request may begin with a byte: methods hold any of RFC 9110's token bytes, and many
// servers skip white space before them.
func mayBeginRequest(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || c < 0x80 && httpguts.IsTokenRune(rune(c))
}

// maybeRedis tells Redis' protocol, whose arrays begin with an asterisk and a number, from a method of such a name, which a
// space would follow.
func maybeRedis(first []byte) protocol {
	for i, c := range first[1:] {
		switch {
		case '0' <= c && c <= '9' && i < 10:
		case c == '\r' && i > 0:
			return speaksOther
		default:
			return speaksHTTP1
		}
	}
	return unknown
}
