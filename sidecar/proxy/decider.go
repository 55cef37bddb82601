// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/netip"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/http1"
	"github.com/headgate/headgate/sidecar/proxy/http2"
	"github.com/headgate/headgate/sidecar/respond"
)

// Engine decides requests, or has them wait for some milliseconds, as admission.Engine does. The request and its strings are
// valid during the call only: they are the bytes of a buffer.
type Engine interface {
	DecideOrHold(r *admission.Request, now limiter.Time, then func(admission.Decision)) (admission.Decision, *admission.Held)
}

// Observer is told how long each decision took.
type Observer interface {
	Observe(seconds float64)
}

// decider asks the engine for one loop.
type decider struct {
	engine   Engine
	clock    func() limiter.Time
	observer Observer
	denials  denials
	came     func()            // is told of each request
	request  admission.Request // scratch
}

// Decide implements http1.Gate.
func (g *decider) Decide(h *http1.Head, peer netip.Addr, then func(admission.Decision)) (admission.Decision, *admission.Held) {
	g.request = admission.Request{Method: h.Method, Path: h.Path, Query: h.Query, Host: h.Host, Header: h, Peer: peer}
	return g.Ask(&g.request, then)
}

// Answer implements http1.Gate.
func (g *decider) Answer(h *http1.Head, d *admission.Decision, v *http1.Verdict) {
	if !d.Allowed {
		v.Answer = g.denials.answer(h.Method, h, d)
		return
	}
	v.Fields = respond.Standing(d)
	if d.Ticket != nil {
		v.Ticket = ticket{d.Ticket, g.clock}
	}
}

// Ask implements http2.Gate.
func (g *decider) Ask(r *admission.Request, then func(admission.Decision)) (admission.Decision, *admission.Held) {
	g.came()
	began := g.clock()
	d, held := g.engine.DecideOrHold(r, began, then)
	g.observer.Observe(g.clock().Sub(began).Seconds())
	return d, held
}

// Say implements http2.Gate.
func (g *decider) Say(r *admission.Request, d *admission.Decision) (v http2.Verdict) {
	if !d.Allowed {
		v.Answer = g.denials.answer(r.Method, r.Header, d)
		return v
	}
	v.Fields = respond.Standing(d)
	if d.Ticket != nil {
		v.Ticket = ticket{d.Ticket, g.clock}
	}
	return v
}

// ticket is an admission.Ticket that knows the time.
type ticket struct {
	*admission.Ticket
	clock func() limiter.Time
}

func (t ticket) Answered(h admission.Header) { t.Ticket.Answered(h, t.clock()) }
