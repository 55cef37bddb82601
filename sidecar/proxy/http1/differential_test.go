// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/proxy/loop"
	"github.com/headgate/headgate/sidecar/proxy/upstream"
)

// script is a client's socket that yields bytes in pieces, and keeps what is written to it.
type script struct {
	pieces [][]byte
	got    bytes.Buffer
	closed bool
}

func (s *script) Handle(loop.Handler) {}
func (s *script) Connected() error    { return nil }
func (s *script) Read(b []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, loop.ErrAgain
	}
	n := copy(b, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	if len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}
func (s *script) Write(b []byte) (int, error) { return s.got.Write(b) }
func (s *script) CloseWrite()                 {}
func (s *script) Close()                      { s.closed = true }
func (s *script) Abort()                      { s.closed = true }

// witness notes what is decided.
type witness struct{ decided []string }

func (w *witness) Decide(h *Head, _ netip.Addr, _ func(admission.Decision)) (admission.Decision, *admission.Held) {
	var fields []string
	for i := range h.fields {
		fields = append(fields, http.CanonicalHeaderKey(string(h.name(i)))+": "+string(h.value(i)))
	}
	w.decided = append(w.decided, fmt.Sprintf("%s %s of %s with %s", h.Method, h.Path, strings.ToLower(h.Host), strings.Join(fields, "|")))
	return admission.Decision{Allowed: true}, nil
}

func (w *witness) Answer(*Head, *admission.Decision, *Verdict) {}

// exchange passes bytes of a client through a connection, to an application that net/http reads for, which answers every
// request that it has read whole. It returns what was decided, what the application read, and in what state all that ended.
type exchange struct {
	decided, read []string
	refused       bool // the application did not take what it got
	mismatch      string
}

type bench struct {
	loop   *loop.Loop
	server *Server
	gate   *witness
}

func newBench(t testing.TB) *bench {
	t.Helper()
	l, err := loop.New(false)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{loop: l, gate: &witness{}}
	b.server = NewServer(Options{
		Loop: l, App: upstream.New(l, 1), Gate: b.gate, Limits: DefaultLimits(),
		Draining: func() bool { return false }, Left: func() {},
	})
	return b
}

// run plays both ends by hand, so that nothing depends on time.
func (b *bench) run(pieces [][]byte) exchange {
	b.gate.decided = nil
	client, app := &script{pieces: pieces}, &script{}
	c := &Conn{server: b.server, client: client, clientReady: true, app: app}
	b.server.conns[c] = struct{}{}
	defer func() { c.abort() }()
	var out exchange
	taken := 0 // bytes that the application has read
	for range 100_000 {
		c.clientReady = true
		c.run()
		if c.call != nil {
			c.call.Cancel()
			c.call = nil
			c.Connected(app, loop.Readable)
		}
		stuck := len(client.pieces) == 0 || c.ended || c.asking == waiting
		sent := app.got.Bytes()
		if taken == len(sent) {
			if stuck {
				break
			}
			continue
		}
		in := bufio.NewReader(bytes.NewReader(sent[taken:]))
		r, err := http.ReadRequest(in)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			if (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) && c.asking == waiting {
				out.mismatch = fmt.Sprintf("the engine takes the request for whole, net/http does not: %v", err)
			}
			if stuck {
				out.refused = true
				break
			}
			continue
		}
		left := in.Buffered()
		if left > 0 {
			out.mismatch = fmt.Sprintf("net/http reads %q as a further request", sent[len(sent)-left:])
			break
		}
		out.read = append(out.read, describe(r))
		taken = len(sent)
		if !c.ended && c.asking != waiting {
			out.mismatch = fmt.Sprintf("net/http takes the request for whole, the engine does not: %v", c.asking)
			break
		}
		length := "Content-Length: 2\r\n\r\nok"
		if r.Method == http.MethodHead {
			length = "Content-Length: 2\r\n\r\n"
		}
		app.pieces = append(app.pieces, []byte("HTTP/1.1 200 OK\r\n"+length))
		c.appReady = true
	}
	out.decided = b.gate.decided
	return out
}

func describe(r *http.Request) string {
	path := r.RequestURI
	if u := r.URL; u.Host != "" && !strings.HasPrefix(path, "/") {
		path = u.EscapedPath()
		if path == "" {
			path = "/"
		}
	} else {
		path, _, _ = strings.Cut(path, "?")
	}
	return fmt.Sprintf("%s %s of %s", r.Method, path, strings.ToLower(r.Host))
}

func (b *bench) check(t *testing.T, name string, pieces [][]byte) {
	t.Helper()
	all := string(bytes.Join(pieces, nil))
	out := b.run(pieces)
	if out.mismatch != "" {
		t.Fatalf("%s: %q: %s", name, all, out.mismatch)
	}
	var decided []string
	for _, d := range out.decided {
		short, _, _ := strings.Cut(d, " with ")
		decided = append(decided, short)
	}
	if len(out.read) > len(decided) {
		t.Fatalf("%s: %q: the application reads %q, decided were %q", name, all, out.read, decided)
	}
	if diff := cmp.Diff(out.read, decided[:len(out.read)], cmpEmpty); diff != "" {
		t.Fatalf("%s: %q: application and engine disagree: %s", name, all, diff)
	}
}

var cmpEmpty = cmp.Transformer("empty", func(in []string) []string { return append([]string{}, in...) })

// cut cuts bytes in pieces of a size.
func cut(all string, size int) (pieces [][]byte) {
	for len(all) > 0 {
		n := min(size, len(all))
		pieces = append(pieces, []byte(all[:n]))
		all = all[n:]
	}
	return pieces
}

// smuggling are requests that hide another one behind or inside of them.
var smuggling = map[string]string{
	"CL.TE":                     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE.CL":                     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\nGET /evil HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\nx=1\r\n0\r\n\r\n",
	"TE.TE, second hidden":      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE.TE, space":              "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE.TE, folded":             "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE.TE, LF in a value":      "POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"CL.0":                      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
	"CL.CL":                     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nContent-Length: 7\r\n\r\n12345\r\na",
	"lengths in a list":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhelloGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"0.CL":                      "GET /con HTTP/1.1\r\nHost: a\r\n Content-Length: 7\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk extension with LF":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n4c\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk extension":           "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c=\"d\"\r\nxx\r\n0;e\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk size that wraps":     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nxx\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk data too long":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk ended by CR":         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\rxx\r\n0\r\n\r\n",
	"trailer with length":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 30\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"trailers, and the next":    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"bare LF everywhere":        "GET / HTTP/1.1\nHost: a\n\nGET /evil HTTP/1.1\nHost: a\n\n",
	"bare CR in the head":       "GET / HTTP/1.1\r\nHost: a\r\nX: a\rGET /evil HTTP/1.1\r\n\r\n",
	"absolute form, other host": "GET http://b/evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"absolute form":             "GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"Connection lists lengths":  "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhelloGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"Connection lists a coding": "POST / HTTP/1.1\r\nHost: a\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"Connection lists a key":    "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Api-Key, keep-alive\r\nX-Api-Key: gold\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"Connection closes":         "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /unread HTTP/1.1\r\nHost: a\r\n\r\n",
	"Expect and no body":        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nGET /body HTTP/1.1\r\nHost: a\r\n\r\n",
	"a method that is a line":   "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nxGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"empty lines between":       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
	"HTTP/0.9":                  "GET /evil\r\n\r\n",
	"HTTP/1.0 chunked":          "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
	"pipelined":                 "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\nPOST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabGET /4 HTTP/1.1\r\nHost: a\r\n\r\n",
}

func TestSmuggledRequestsAreSeenByBothOrByNone(t *testing.T) {
	b := newBench(t)
	for name, all := range smuggling {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(all); size += 1 + size/8 {
				b.check(t, name, cut(all, size))
			}
		})
	}
}

func TestLegitimatePipelinesArriveWhole(t *testing.T) {
	b := newBench(t)
	for name, want := range map[string]int{"pipelined": 4, "empty lines between": 2, "chunk extension": 2, "trailers, and the next": 2, "CL.0": 1, "Connection closes": 1} {
		for _, size := range []int{1, 7, 1000} {
			if out := b.run(cut(smuggling[name], size)); len(out.read) != want || len(out.decided) != want {
				t.Errorf("%s in pieces of %d: read %q, decided %q", name, size, out.read, out.decided)
			}
		}
	}
}

func FuzzTheApplicationReadsWhatWasDecided(f *testing.F) {
	for _, seed := range smuggling {
		f.Add([]byte(seed), uint16(0))
		f.Add([]byte(seed), uint16(5))
	}
	b := newBench(f)
	f.Fuzz(func(t *testing.T, all []byte, size uint16) {
		if size == 0 {
			size = 1 << 15
		}
		b.check(t, "fuzz", cut(string(all), int(size)))
	})
}
