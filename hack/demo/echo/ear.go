// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// ear listens, and can stop listening for a while: the process then lives, and nobody can connect to it.
type ear struct {
	address string

	mu     sync.Mutex
	open   net.Listener
	deaf   time.Duration // how long to wait before listening again
	closed bool
}

// serve serves until close is called.
func (e *ear) serve(server *http.Server) error {
	for {
		l, err := net.Listen("tcp", e.address)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.open, e.deaf = l, 0
		closed := e.closed
		e.mu.Unlock()
		if closed {
			return l.Close()
		}
		err = server.Serve(l)
		e.mu.Lock()
		wait, over := e.deaf, e.closed
		e.mu.Unlock()
		switch {
		case wait > 0:
			time.Sleep(wait)
		case over || errors.Is(err, http.ErrServerClosed):
			return nil
		default:
			return err
		}
	}
}

// deafen stops listening for a while.
func (e *ear) deafen(wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != nil && wait > 0 {
		e.deaf = wait
		_ = e.open.Close()
	}
}

func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.open != nil {
		_ = e.open.Close()
	}
}
