// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func newPoller(l *Loop, portable Portable) (poller, error) {
	if portable {
		return newGoroutines(l), nil
	}
	return newEpoll(l)
}

// epoll waits for sockets as Linux does it best. System calls on sockets do not block, so they are made without telling
// the scheduler (RawSyscall).
type epoll struct {
	loop  *Loop
	fd    int
	bell  int // an eventfd
	slots []slot
	free  []int32
	ready [256]unix.EpollEvent

	// Waiting is left to Go's own poller, for which an epoll is a descriptor like any other. A system call that blocks
	// would have the scheduler look after it, every 20 microseconds, and find another thread for the rest of the program.
	file  *os.File
	wakes syscall.RawConn
	alarm time.Duration // when file's deadline is, 0 when there is none
	n     int
	look  func(uintptr) bool
}

// slot is what an event's number leads to. The turn tells events of a socket from those of an earlier one.
type slot struct {
	handler Handler
	turn    int32
}

const bellSlot = -1

func newEpoll(l *Loop) (poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	p := &epoll{loop: l, fd: fd, bell: bell}
	if err = unix.SetNonblock(fd, true); err == nil { // so that os.NewFile leaves it to the poller
		p.file = os.NewFile(uintptr(fd), "epoll")
		p.wakes, err = p.file.SyscallConn()
	}
	if err == nil {
		err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: bellSlot})
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.look = func(uintptr) bool {
		p.n = p.poll()
		return p.n > 0
	}
	return p, nil
}

func (p *epoll) close() {
	if p.file != nil {
		_ = p.file.Close()
	} else {
		_ = unix.Close(p.fd)
	}
	_ = unix.Close(p.bell)
}

func (p *epoll) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.bell, one[:])
}

func (p *epoll) wait(timeout time.Duration) {
	n := 0
	if timeout == 0 {
		n = p.poll()
	} else {
		n = p.block(timeout)
	}
	p.loop.begin()
	for i := range p.ready[:n] {
		e := &p.ready[i]
		if e.Fd == bellSlot {
			var b [8]byte
			_, _ = unix.Read(p.bell, b[:])
			continue
		}
		if s := &p.slots[e.Fd]; s.turn == e.Pad && s.handler != nil {
			s.handler.Ready(events(e.Events))
		}
	}
	p.loop.finish()
}

// poll asks without waiting.
func (p *epoll) poll() int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.ready[0])), uintptr(len(p.ready)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

func (p *epoll) block(timeout time.Duration) int {
	if now := p.loop.now; timeout > 0 && (p.alarm == 0 || p.alarm > now+timeout) {
		// An alarm that comes early costs a turn, and a later one is not set before: most timers are stopped in time.
		p.alarm = now + timeout
		_ = p.file.SetReadDeadline(p.loop.base.Add(p.alarm))
	}
	p.n = 0
	if err := p.wakes.Read(p.look); err != nil {
		p.alarm = 0
		_ = p.file.SetReadDeadline(time.Time{})
	}
	return p.n
}

func events(e uint32) (out Events) {
	if e&(unix.EPOLLIN|unix.EPOLLPRI) != 0 {
		out |= Readable
	}
	if e&unix.EPOLLOUT != 0 {
		out |= Writable
	}
	if e&unix.EPOLLRDHUP != 0 {
		out |= Hangup
	}
	if e&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		out |= Broken
	}
	return out
}

// enlist registers a descriptor, once and for all.
func (p *epoll) enlist(fd int, events uint32, h Handler) (int32, error) {
	var id int32
	if n := len(p.free); n > 0 {
		id = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		id = int32(len(p.slots))
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[id]
	s.turn++
	s.handler = h
	err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: id, Pad: s.turn})
	if err != nil {
		p.forget(id)
	}
	return id, err
}

// forget frees a slot. Closing the descriptor ends its registration.
func (p *epoll) forget(id int32) {
	p.slots[id].handler = nil
	p.free = append(p.free, id)
}

const onSocket = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

func (p *epoll) dial(address netip.AddrPort, h Handler) (Socket, error) {
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(address.Port()), Addr: [4]byte{127, 0, 0, 1}})
	if address.Addr().Is6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
	} else {
		to.(*unix.SockaddrInet4).Addr = address.Addr().As4()
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		_ = unix.Close(fd)
		return nil, err
	}
	return p.adopt(fd, h)
}

func (p *epoll) adopt(fd int, h Handler) (Socket, error) {
	id, err := p.enlist(fd, onSocket, h)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &descriptor{poller: p, fd: fd, id: id}, nil
}

// descriptor is a Socket.
type descriptor struct {
	poller *epoll
	fd     int
	id     int32
}

func (d *descriptor) Handle(h Handler) { d.poller.slots[d.id].handler = h }

func (d *descriptor) Connected() error {
	errno, err := unix.GetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

func (d *descriptor) Read(b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(d.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case errno == 0 && n > 0:
			return int(n), nil
		case errno == 0:
			return 0, io.EOF
		case errno == unix.EAGAIN:
			return 0, ErrAgain
		case errno != unix.EINTR:
			return 0, errno
		}
	}
}

func (d *descriptor) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(d.fd), uintptr(unsafe.Pointer(&b[written])), uintptr(len(b)-written), unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			written += int(n)
		case unix.EAGAIN:
			return written, ErrAgain
		case unix.EINTR:
		default:
			return written, errno
		}
	}
	runtime.KeepAlive(b)
	return written, nil
}

func (d *descriptor) CloseWrite() { _ = unix.Shutdown(d.fd, unix.SHUT_WR) }

func (d *descriptor) Close() {
	if d.fd < 0 {
		return
	}
	d.poller.forget(d.id)
	_ = unix.Close(d.fd)
	d.fd = -1
}

func (d *descriptor) Abort() {
	if d.fd >= 0 {
		_ = unix.SetsockoptLinger(d.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	d.Close()
}

// epollListener accepts. It is level-triggered: a turn takes a bounded number. Several loops may listen on one listener; a
// connection wakes one of them.
type epollListener struct {
	poller *epoll
	fd     int
	id     int32
	accept func(Socket, netip.Addr)
	rest   Timer
	resume *Timeouts
}

const (
	// acceptsPerTurn is few, so that connections that come together spread over the loops of a listener.
	acceptsPerTurn = 4
	// acceptRest is how long nothing is accepted once file descriptors have run out.
	acceptRest = 10 * time.Millisecond
)

func (p *epoll) listen(l *net.TCPListener, accept func(Socket, netip.Addr)) (Listener, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	a := &epollListener{poller: p, accept: accept, resume: p.loop.NewTimeouts(acceptRest)}
	controlErr := raw.Control(func(fd uintptr) {
		// Accepted sockets inherit it.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
		a.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, err
	}
	if a.id, err = p.enlist(a.fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE, a); err != nil {
		_ = unix.Close(a.fd)
		return nil, err
	}
	return a, nil
}

func (a *epollListener) Ready(Events) {
	for range acceptsPerTurn {
		if a.fd < 0 {
			return
		}
		fd, from, err := unix.Accept4(a.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case err == nil:
		case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		default: // no file descriptors, or no memory: connections that end will free some
			a.delist()
			a.resume.Start(&a.rest, a)
			return
		}
		s, err := a.poller.adopt(fd, nil)
		if err != nil {
			continue
		}
		a.accept(s, addr(from))
	}
}

// Expired implements Expirer.
func (a *epollListener) Expired(*Timeouts) {
	var err error
	if a.id, err = a.poller.enlist(a.fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE, a); err != nil {
		a.resume.Start(&a.rest, a)
	}
}

// delist takes the descriptor off the loop. Closing it does not: net holds another one of the same socket.
func (a *epollListener) delist() {
	_ = unix.EpollCtl(a.poller.fd, unix.EPOLL_CTL_DEL, a.fd, nil)
	a.poller.forget(a.id)
}

func (a *epollListener) Close() {
	if a.fd < 0 {
		return
	}
	if a.resume.Runs(&a.rest) {
		a.rest.Stop()
	} else {
		a.delist()
	}
	_ = unix.Close(a.fd)
	a.fd = -1
}

func addr(from unix.Sockaddr) netip.Addr {
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(from.Addr)
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(from.Addr)
		if from.ZoneId == 0 || a.Is4In6() {
			return a
		}
		if i, err := net.InterfaceByIndex(int(from.ZoneId)); err == nil {
			return a.WithZone(i.Name)
		}
		return a
	}
	return netip.Addr{}
}
