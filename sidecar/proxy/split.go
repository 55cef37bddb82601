// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net"
	"sync"
)

// replayed is a connection that yields some bytes before its own. Reading is for one goroutine at a time.
type replayed struct {
	*net.TCPConn
	first []byte
}

func (c *replayed) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.TCPConn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}

// WriteTo shadows the one of TCPConn, which does not know of the first bytes.
func (c *replayed) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(c.first)
	c.first = c.first[n:]
	if err != nil {
		return int64(n), err
	}
	m, err := c.TCPConn.WriteTo(w)
	return int64(n) + m, err
}

// queue is a net.Listener that is fed with connections that somebody else accepted.
type queue struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newQueue(address net.Addr) *queue {
	return &queue{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// put hands a connection over. It returns false when the queue is closed.
func (q *queue) put(conn net.Conn) bool {
	select {
	case q.conns <- conn:
		return true
	case <-q.closed:
		return false
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *queue) Addr() net.Addr { return q.address }
