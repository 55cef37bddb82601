// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Drain makes every answer from now on ask the client to go elsewhere. Connections are still accepted and served: the
// endpoints that lead here disappear only slowly.
func (p *Proxy) Drain() {
	if p.draining.Swap(true) {
		return
	}
	p.each((*lane).drain)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	// Shutdown is the only way to have net/http send GOAWAY on connections without a request. It ends the server, so that
	// another one takes the connections to come.
	old := p.h2
	p.h2, p.h2old = p.newServer(), old
	p.h2.start()
	go func() { _ = old.http.Shutdown(context.Background()) }()
}

// Shutdown stops accepting and waits for the requests in flight, and for connections that have been upgraded, until the
// context ends; then it cuts them.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	p.mu.Lock()
	p.closed = true
	idle := p.lanes == nil
	p.mu.Unlock()
	_ = p.listener.Close()
	if idle {
		return nil
	}
	p.each((*lane).finish)
	defer p.endH2(ctx)
	select {
	case <-p.ended:
		return p.quiet(ctx)
	case <-ctx.Done():
	}
	var cut atomic.Int64
	cut.Store(p.inflight.Load())
	p.each(func(l *lane) { cut.Add(int64(l.cut())) })
	<-p.ended
	if cut.Load() == 0 {
		return nil
	}
	return fmt.Errorf("%d connections cut: %w", cut.Load(), ctx.Err())
}

// endH2 ends the servers of HTTP/2.
func (p *Proxy) endH2(ctx context.Context) {
	p.mu.Lock()
	servers := []*server{p.h2}
	if p.h2old != nil {
		servers = append(servers, p.h2old)
	}
	p.mu.Unlock()
	for _, s := range servers {
		_ = s.http.Shutdown(ctx)
		_ = s.http.Close()
		s.wait()
	}
	p.h2app.CloseIdleConnections()
}

// quiet waits until no request is in flight over HTTP/2.
func (p *Proxy) quiet(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for p.inflight.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d requests cut: %w", p.inflight.Load(), ctx.Err())
		}
	}
	return nil
}

// each does something on every lane, some time later.
func (p *Proxy) each(f func(*lane)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		l.loop.Post(func() { f(l) })
	}
}
