// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/headgate/headgate/limiter"
)

// Drain makes every answer from now on ask the client to go elsewhere. Connections are still accepted and served: the
// endpoints that lead here disappear only slowly.
func (p *Proxy) Drain() {
	if p.draining.Swap(true) {
		return
	}
	p.each((*lane).drain)
}

// Asked is when a client came last, with a connection or a request, since Drain was called; 0 when none has.
func (p *Proxy) Asked() limiter.Time { return limiter.Time(p.asked.Load()) }

// came notes that a client has come, where that is of interest.
func (p *Proxy) came() {
	if p.draining.Load() {
		p.asked.Store(int64(p.options.Clock()))
	}
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
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	}
	var cut atomic.Int64
	p.each(func(l *lane) { cut.Add(int64(l.cut())) })
	<-p.ended
	if cut.Load() == 0 {
		return nil
	}
	return fmt.Errorf("%d connections cut: %w", cut.Load(), ctx.Err())
}

// each does something on every lane, some time later.
func (p *Proxy) each(f func(*lane)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		l.loop.Post(func() { f(l) })
	}
}
