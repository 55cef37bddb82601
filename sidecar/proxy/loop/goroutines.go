// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// goroutines waits for sockets as any system can: each has a goroutine that reads and, while something is to be written,
// one that writes. They tell the loop, which handles the events like any other poller.
type goroutines struct {
	loop  *Loop
	alarm chan struct{}
	timer *time.Timer
	works sync.WaitGroup // all goroutines
}

func newGoroutines(l *Loop) poller {
	return &goroutines{loop: l, alarm: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}

func (p *goroutines) wake() {
	select {
	case p.alarm <- struct{}{}:
	default:
	}
}

func (p *goroutines) wait(timeout time.Duration) {
	if timeout >= 0 {
		p.timer.Reset(timeout)
		select {
		case <-p.alarm:
		case <-p.timer.C:
		}
	} else {
		<-p.alarm
	}
	p.loop.begin()
	p.loop.finish()
}

func (p *goroutines) close() {
	p.timer.Stop()
	p.works.Wait()
}

type goroutineListener struct {
	mu       sync.Mutex
	listener *net.TCPListener
	closed   bool
}

func (p *goroutines) listen(l *net.TCPListener, accept func(Socket, netip.Addr)) (Listener, error) {
	g := &goroutineListener{listener: l}
	p.works.Go(func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				if errors.Is(err, net.ErrClosed) || g.isClosed() {
					return
				}
				time.Sleep(acceptPause) // no file descriptors: those that end will free some
				continue
			}
			peer := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
			if !p.loop.Post(func() {
				s := p.adopt(conn)
				accept(s, peer)
			}) {
				_ = conn.Close()
			}
		}
	})
	return g, nil
}

const acceptPause = 10 * time.Millisecond

func (g *goroutineListener) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close also closes the listener that it was made of: nothing else ends Accept.
func (g *goroutineListener) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	_ = g.listener.Close()
}

func (p *goroutines) dial(address netip.AddrPort, h Handler) (Socket, error) {
	s := &stream{poller: p, handler: h, more: make(chan struct{}, 1), write: make(chan struct{}, 1), gone: make(chan struct{})}
	p.works.Go(func() {
		conn, err := net.Dial("tcp", address.String())
		if !p.loop.Post(func() { s.dialled(conn, err) }) && conn != nil {
			_ = conn.Close()
		}
	})
	return s, nil
}

func (p *goroutines) adopt(conn net.Conn) *stream {
	s := &stream{poller: p, conn: conn, more: make(chan struct{}, 1), write: make(chan struct{}, 1), gone: make(chan struct{})}
	s.start()
	return s
}

// stream is a Socket.
type stream struct {
	poller  *goroutines
	conn    net.Conn // nil until connected
	failure error    // of dialling
	more    chan struct{}
	write   chan struct{}
	gone    chan struct{} // closed by Close

	// For the loop only.
	handler Handler
	closed  bool

	mu       sync.Mutex
	in       []byte // read and not taken yet
	inErr    error
	out      []byte // being written
	writing  bool
	outErr   error
	closeOut bool
	buffer   [16 << 10]byte
}

func (s *stream) dialled(conn net.Conn, err error) {
	if s.closed {
		if conn != nil {
			_ = conn.Close()
		}
		return
	}
	s.conn, s.failure = conn, err
	if err != nil {
		s.handler.Ready(Broken)
		return
	}
	s.start()
	s.handler.Ready(Writable)
}

func (s *stream) start() {
	s.poller.works.Go(s.reading)
	s.poller.works.Go(s.writes)
}

func (s *stream) tell(e Events) {
	s.poller.loop.Post(func() {
		if !s.closed && s.handler != nil {
			s.handler.Ready(e)
		}
	})
}

// reading fills the buffer whenever it has been emptied.
func (s *stream) reading() {
	for {
		n, err := s.conn.Read(s.buffer[:])
		s.mu.Lock()
		s.in, s.inErr = s.buffer[:n], err
		s.mu.Unlock()
		switch {
		case errors.Is(err, io.EOF):
			s.tell(Readable | Hangup)
		case err != nil:
			s.tell(Readable | Broken)
		default:
			s.tell(Readable)
		}
		if err != nil {
			return
		}
		select {
		case <-s.more:
		case <-s.gone:
			return
		}
	}
}

// writes writes what the loop has left, and ends with the socket.
func (s *stream) writes() {
	defer func() { _ = s.conn.Close() }()
	for {
		select {
		case <-s.write:
		case <-s.gone:
			s.flush()
			return
		}
		s.flush()
		s.tell(Writable)
	}
}

func (s *stream) flush() {
	s.mu.Lock()
	out := s.out
	s.mu.Unlock()
	var err error
	if len(out) > 0 {
		_, err = s.conn.Write(out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if half, ok := s.conn.(*net.TCPConn); ok && s.closeOut && err == nil {
		_ = half.CloseWrite() // does not block
	}
	s.out, s.outErr, s.writing = s.out[:0], err, false
}

func (s *stream) Handle(h Handler) { s.handler = h }

func (s *stream) Connected() error { return s.failure }

func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.in) > 0 {
		n := copy(b, s.in)
		s.in = s.in[n:]
		if len(s.in) == 0 && s.inErr == nil {
			s.more <- struct{}{}
		}
		return n, nil
	}
	if s.inErr != nil {
		return 0, s.inErr
	}
	return 0, ErrAgain
}

// written at most at once: what the writing goroutine holds.
const outSize = 64 << 10

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outErr != nil {
		return 0, s.outErr
	}
	if s.writing {
		return 0, ErrAgain
	}
	n := min(len(b), outSize)
	s.out = append(s.out[:0], b[:n]...)
	s.writing = true
	s.write <- struct{}{}
	if n < len(b) {
		return n, ErrAgain
	}
	return n, nil
}

func (s *stream) CloseWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeOut = true
	if !s.writing {
		s.writing = true
		s.write <- struct{}{}
	}
}

func (s *stream) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.conn == nil {
		return
	}
	// The peer may not read: what is being written gets a moment.
	_ = s.conn.SetWriteDeadline(time.Now().Add(closePatience))
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	close(s.gone)
}

const closePatience = time.Second

func (s *stream) Abort() {
	if tcp, ok := s.conn.(*net.TCPConn); ok && !s.closed {
		_ = tcp.SetLinger(0)
		_ = tcp.SetWriteDeadline(time.Unix(1, 0))
	}
	s.Close()
	if s.conn != nil {
		_ = s.conn.SetWriteDeadline(time.Unix(1, 0))
	}
}
