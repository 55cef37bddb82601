// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/sidecar/proxy/http1"
)

// descriptors is how many file descriptors this process has open; -1 where nobody knows.
func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

// settled is what there is before a test begins: once the proxy runs, and with no connection.
func settled(t *testing.T, g *gate) (fds, routines int) {
	t.Helper()
	eventually(t, "the proxy to run", func() bool { return g.sum(func(*lane) int { return 1 }) > 0 })
	time.Sleep(10 * time.Millisecond) // the connections of the test before
	return descriptors(), runtime.NumGoroutine()
}

// idles awaits that nothing is left of what a test has opened.
func idles(t *testing.T, g *gate, fds, routines int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%d descriptors, %d before; %d goroutines, %d before; %d connections open", descriptors(), fds, runtime.NumGoroutine(), routines, g.open())
		}
	}()
	eventually(t, "file descriptors and goroutines to be given back", func() bool {
		return descriptors() <= fds && runtime.NumGoroutine() <= routines && g.open() == 0
	})
}

// open is how many connections the proxy has, and held how many bytes wait in its buffers.
func (g *gate) open() int { return g.sum((*lane).open) }
func (g *gate) held() int { return g.sum(func(l *lane) int { return l.loop.Buffers.Held() }) }

func (g *gate) sum(f func(*lane) int) int {
	g.mu.Lock()
	lanes := g.lanes
	g.mu.Unlock()
	n := 0
	for _, l := range lanes {
		answer := make(chan int, 1)
		if l.loop.Post(func() { answer <- f(l) }) {
			n += <-answer
		}
	}
	return n
}

// limited has the next gates be of these limits.
func limited(t *testing.T, change func(*http1.Limits)) {
	t.Helper()
	l := http1.DefaultLimits()
	change(&l)
	limits = l
	t.Cleanup(func() { limits = http1.Limits{} })
}

func TestAClientThatGoesAtAnyByteLeavesNothingBehind(t *testing.T) {
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}))
	fds, routines := settled(t, g)
	all := "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
	for cut := range len(all) + 1 {
		for _, abruptly := range []bool{false, true} {
			c := dial(t, g.address).(*net.TCPConn)
			_, _ = io.WriteString(c, all[:cut])
			if abruptly {
				_ = c.SetLinger(0)
			}
			_ = c.Close()
		}
	}
	idles(t, g, fds, routines)
	if held := g.held(); held != 0 {
		t.Errorf("%d bytes are held for nobody", held)
	}
}

// An application that breaks off at any byte must never make the client believe in an answer that it has not given.
func TestAnApplicationThatGoesAtAnyByteIsNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: y\r\n\r\n"
	cuts := make(chan int, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, answer[:<-cuts])
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	g := serveAt(t, l.Addr().(*net.TCPAddr).Port)
	for cut := range len(answer) + 1 {
		cuts <- cut
		c := dial(t, g.address)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		b, err := io.ReadAll(response.Body)
		head := strings.Index(answer, "\r\n\r\n") + 4
		switch {
		case cut < head && response.StatusCode != http.StatusBadGateway:
			t.Errorf("cut at %d, in the head: %d", cut, response.StatusCode)
		case cut >= head && cut < len(answer) && err == nil:
			t.Errorf("cut at %d, in the body: %q reads as whole", cut, b)
		case cut == len(answer) && (err != nil || string(b) != "hello"):
			t.Errorf("whole: %q, %v", b, err)
		}
		_ = c.Close()
	}
}

func TestSlowHeadsAreGivenUp(t *testing.T) {
	limited(t, func(l *http1.Limits) { l.HeadTime = 200 * time.Millisecond })
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the application was asked") }))
	fds, routines := settled(t, g)
	stop := make(chan struct{})
	defer close(stop)
	for _, first := range []string{"", "G", "GET / HTTP/1.1\r\nHost: a\r\n", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x10\x00\x01\x00\x00\x00\x00\x01\x82"} {
		c := dial(t, g.address)
		_, _ = io.WriteString(c, first)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				if _, err := io.WriteString(c, "x"); err != nil || first == "" || strings.HasPrefix(first, "PRI") {
					return
				}
			}
		}()
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q is waited for: %v", first, err)
		}
		_ = c.Close()
	}
	idles(t, g, fds, routines)
}

func TestManyLargeHeadsAreBounded(t *testing.T) {
	limited(t, func(l *http1.Limits) { l.Memory = 1 << 20 })
	g := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	part := "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 50_000)
	for range 200 { // 10 MB
		c := dial(t, g.address)
		_, _ = io.WriteString(c, part)
	}
	most := runtime.GOMAXPROCS(0) * (2<<20 + 200*4<<10)
	eventually(t, "the heads to be read or refused", func() bool { return g.held() > 1<<20 || g.open() < 200 })
	if held := g.held(); held > most {
		t.Errorf("%d bytes are held, at most %d should be", held, most)
	}
}

func TestClientsThatReadNothingAreBounded(t *testing.T) {
	limited(t, func(l *http1.Limits) { l.Memory = 1 << 20 })
	content := make([]byte, 8<<20)
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	for i := range 32 { // 256 MB, if somebody kept them
		c := dial(t, g.address)
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		if i%2 == 0 {
			_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 10))
			continue
		}
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
			"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff"+ // any number of bytes,
			"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00"+ // of all streams,
			"\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x86\x84\x41\x01a") // for this one
	}
	most := runtime.GOMAXPROCS(0)*(1<<20) + 32*(128<<10)
	for range 20 {
		if held := g.held(); held > most {
			t.Fatalf("%d bytes are held, at most %d should be", held, most)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestABodyWithoutEndIsPassedOnAndNotKept(t *testing.T) {
	got := make(chan int64, 1)
	g := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	}))
	c := dial(t, g.address)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, make([]byte, 64<<10))
	for range 500 { // 32 MB
		if _, err := io.WriteString(c, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if held := g.held(); held > 256<<10 {
		t.Errorf("%d bytes are held", held)
	}
	_ = c.Close()
	if n := <-got; n != 500*64<<10 {
		t.Errorf("the application has read %d bytes", n)
	}
}

func TestThousandsOfIdleConnectionsCostLittle(t *testing.T) {
	if portable {
		return // goroutines, and buffers that they wait with, are what the other way is there to spare
	}
	g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	fds, routines := settled(t, g)
	leave := comeIn(t, g.address)
	if open := g.open(); open != crowd {
		t.Errorf("%d connections of %d are open", open, crowd)
	}
	if held := g.held(); held != 0 {
		t.Errorf("%d bytes are held for idle connections", held)
	}
	// Only the clients are left, and idle ones do not keep the application's connections.
	eventually(t, "the application to be left alone", func() bool { return descriptors() <= fds+crowd+8 && runtime.NumGoroutine() <= routines+8 })
	leave()
	idles(t, g, fds+4, routines+8)
}

// crowd is how many clients there are, in a process of their own: one process has not the descriptors for both ends.
const (
	crowd    = 10_000
	envCrowd = "HEADGATE_TEST_CROWD"
)

// comeIn starts the crowd, waits until each of it has been answered, and returns what makes it go.
func comeIn(t *testing.T, address string) (leave func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envCrowd+"="+address)
	cmd.Stderr = os.Stderr
	stay, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil || line != "in\n" {
		t.Errorf("the crowd says %q, %v", line, err)
	}
	return func() {
		_ = stay.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the crowd: %v", err)
		}
	}
}

// beCrowd asks once on each of many connections, and keeps them until its input ends. It comes in slowly enough for the
// application's connections, which last for a second, not to use up the other process's descriptors.
func beCrowd(address string) int {
	conns := make([]net.Conn, 0, crowd)
	pace := time.NewTicker(500 * time.Microsecond)
	defer pace.Stop()
	for range crowd {
		<-pace.C
		c, err := net.Dial("tcp", address)
		if err == nil {
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 16))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "connection %d: %v\n", len(conns), err)
			return 1
		}
		conns = append(conns, c)
	}
	fmt.Println("in")
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range conns {
		_ = c.Close()
	}
	return 0
}
