// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Drain makes every answer from now on ask the client to go elsewhere. Connections are still accepted and served: the
// endpoints that lead here disappear only slowly.
func (p *Proxy) Drain() {
	if p.draining.Swap(true) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	// Shutdown is the only way to have net/http send GOAWAY on connections without a request. It ends the server, so that
	// another one takes the connections to come. HTTP/1.1 has no such message: there, Shutdown would cut idle connections
	// under requests that are on their way.
	old := p.h2
	p.h2, p.h2old = p.newServer(true), old
	p.h2.start()
	go func() { _ = old.http.Shutdown(context.Background()) }()
}

// Shutdown stops accepting and waits for the requests in flight until the context ends; then it cuts them.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	servers := []*server{p.h1, p.h2}
	if p.h2old != nil {
		servers = append(servers, p.h2old)
	}
	p.mu.Unlock()
	var waiting sync.WaitGroup
	for _, s := range servers {
		waiting.Go(func() { _ = s.http.Shutdown(ctx) })
	}
	err := p.quiet(ctx)
	waiting.Wait()
	for _, s := range servers {
		_ = s.http.Close()
		s.wait()
	}
	p.hush()
	p.h1app.CloseIdleConnections()
	p.h2app.CloseIdleConnections()
	return err
}

// quiet waits until no request is in flight. http.Server does not wait for upgraded connections.
func (p *Proxy) quiet(ctx context.Context) error {
	tick := time.NewTicker(poll)
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

// hush closes the connections that have said nothing and waits for their goroutines.
func (p *Proxy) hush() {
	p.mu.Lock()
	for conn := range p.silent {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.sniffing.Wait()
}
