// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// read is a request as Node has read it.
type read struct {
	Mark, Method, URL, Host string
	Length                  int
}

// reader is a Node application that tells what it reads.
type reader struct {
	address string
	mu      sync.Mutex
	reads   []read
}

func (r *reader) Addr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", r.address)
	if err != nil {
		panic(err)
	}
	return a
}
func (r *reader) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (r *reader) Close() error              { return nil }

// of returns what has been read with a mark.
func (r *reader) of(mark string) (out []read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.reads {
		if one.Mark == mark {
			out = append(out, one)
		}
	}
	return out
}

func startReader(t *testing.T) *reader {
	t.Helper()
	cmd := exec.Command(program(t, "node"), "testdata/reader.js")
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &reader{}
	lines := bufio.NewScanner(out)
	var first struct{ Port int }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil {
		t.Fatalf("node says %q", lines.Text())
	}
	r.address = fmt.Sprintf("127.0.0.1:%d", first.Port)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			var one read
			if json.Unmarshal(lines.Bytes(), &one) == nil {
				r.mu.Lock()
				r.reads = append(r.reads, one)
				r.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	return r
}

// Whatever the bytes, Node reads no request through the sidecar that was not decided: each answer that the client gets is for
// one request, and Node has read as many as were decided.
func TestNodeReadsTheRequestsThatWereDecided(t *testing.T) {
	app := startReader(t)
	address := gate(t, app)
	random := rand.New(rand.NewPCG(1, 2))
	cases := append([]string(nil), payloads...)
	for range 400 {
		cases = append(cases, mutate(random, payloads[random.IntN(len(payloads))]))
	}
	type outcome struct {
		sent, answers string
		decided       int
	}
	var outcomes []outcome
	for i, c := range cases {
		before := decided.Load()
		sent := strings.ReplaceAll(c, "MARK", fmt.Sprintf("m%d.", i))
		answers := exchange(t, address.String(), sent)
		outcomes = append(outcomes, outcome{sent, answers, int(decided.Load() - before)})
	}
	// Node has told of everything once it tells of this.
	exchange(t, address.String(), "GET /end HTTP/1.1\r\nHost: a\r\nX-Mark: end\r\nConnection: close\r\n\r\n")
	for give := time.Now().Add(10 * time.Second); len(app.of("end")) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("node does not answer")
		}
	}
	for i, o := range outcomes {
		reads := app.of(fmt.Sprintf("m%d.", i))
		// A request whose body has not come whole is decided, and not read to its end.
		if len(reads) > o.decided {
			t.Errorf("%q: Node has read %+v, decided were %d; answers %q", o.sent, reads, o.decided, o.answers)
		}
		for _, one := range reads {
			if strings.Contains(one.URL, "/evil") && o.decided < 2 {
				t.Errorf("%q: Node has read the hidden request %+v", o.sent, one)
			}
		}
		if want, ok := legitimate[i]; ok && (len(reads) != want || o.decided != want) {
			t.Errorf("%q: Node has read %+v, decided were %d, want %d; answers %q", o.sent, reads, o.decided, want, o.answers)
		}
	}
}

// legitimate are how many requests the payloads hold that are as they should be.
var legitimate = map[int]int{0: 2, 5: 1, 8: 2, 11: 2, 13: 2, 14: 2, 19: 2}

// payloads hide a request behind or inside of another. MARK tells them apart.
var payloads = []string{
	"GET /1 HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length: 15\r\n\r\nx=1\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding : chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length: 49\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nA: b\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length: 8\r\nContent-Length: 7\r\n\r\n12345\r\na",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n4c\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nxx\r\n0\r\nX: y\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\nX-Mark: MARK\n\nGET /evil HTTP/1.1\nHost: a\nX-Mark: MARK\n\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nX: a\rGET /evil HTTP/1.1\r\n\r\n",
	"GET http://a/x HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"GET http://b/evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhelloGET /next HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length: 1\r\n\r\nx\r\nGET /next HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.0\r\nHost: a\r\nX-Mark: MARK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nContent-Length:\r\n 5\r\n\r\nhello",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-Mark: MARK\r\n\r\n",
	"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nX-Mark: MARK\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nX-Mark: MARK\r\n\r\n",
}

// mutate changes, removes, doubles or inserts a few bytes.
func mutate(r *rand.Rand, s string) string {
	b := []byte(s)
	interesting := []string{"\r", "\n", "\r\n", " ", "\t", ":", ";", ",", "0", "\x00", "\x0b", "chunked", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "\r\n\r\n", "5", "-", "+", "_"}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			b[at] = byte(r.IntN(256))
		case 1:
			b = append(b[:at], b[at+1:]...)
		case 2:
			b = append(b[:at], append([]byte(interesting[r.IntN(len(interesting))]), b[at:]...)...)
		case 3:
			end := min(len(b), at+1+r.IntN(20))
			b = append(b[:end:end], b[at:]...)
		}
	}
	return string(b)
}

// exchange sends bytes and returns what comes back until the connection ends or nothing more comes.
func exchange(t *testing.T, address, sent string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, sent)
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	b, _ := io.ReadAll(c)
	return string(b)
}

func TestNodesClientsAreServed(t *testing.T) {
	app := startReader(t)
	h1 := gate(t, app)
	h2 := gate(t, application(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })))
	out, err := exec.Command(program(t, "node"), "testdata/clients.js", fmt.Sprint(h1.Port), fmt.Sprint(h2.Port)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done") {
		t.Errorf("%v\n%s", err, out)
	}
}
