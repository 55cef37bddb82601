// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// sourcePorts hands out source ports in turn, and never again one from which a connection failed. A node remembers for two
// minutes to which pod it has led an attempt from a port; when that pod was gone, every further attempt from the same port
// is led to the same nowhere, and the kernel likes to take just that port again.
type sourcePorts struct {
	mu   sync.Mutex
	next int
	bad  map[int]bool
}

const (
	firstPort = 10000
	lastPort  = 60000
)

var ports = &sourcePorts{next: firstPort + rand.IntN(lastPort-firstPort), bad: map[int]bool{}}

func (p *sourcePorts) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.next++; p.next > lastPort {
			p.next = firstPort
		}
		if !p.bad[p.next] {
			return p.next
		}
	}
}

// leap goes on from somewhere else: who has used one port has often used the next ones too.
func (p *sourcePorts) leap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = firstPort + rand.IntN(lastPort-firstPort)
}

func (p *sourcePorts) spoil(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad[port] = true
}

// portsTried bounds the search for a port that nobody uses.
const portsTried = 100

// Dial connects to an address of a cluster.
func Dial(ctx context.Context, address string, timeout time.Duration) (net.Conn, error) {
	for range portsTried {
		port := ports.take()
		dialer := &net.Dialer{Timeout: timeout, LocalAddr: &net.TCPAddr{Port: port}}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL):
			ports.leap() // somebody has it, or had it a minute ago
			continue
		}
		ports.spoil(port)
		return nil, fmt.Errorf("from port %d: %w", port, err)
	}
	return nil, fmt.Errorf("no free port among %d", portsTried)
}
