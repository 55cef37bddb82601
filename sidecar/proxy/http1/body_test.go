// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// takeCut gives a body in two parts, and returns how many bytes of all belong to it.
func takeCut(f framing, all string, cut int) (int, bool, error) {
	n, err := f.take([]byte(all[:cut]))
	if err != nil || n < cut || f.over() {
		return n, f.over(), err
	}
	m, err := f.take([]byte(all[cut:]))
	return n + m, f.over(), err
}

func TestABodyEndsInTheSamePlaceHoweverItIsCut(t *testing.T) {
	const next = "GET /next HTTP/1.1\r\n"
	for name, tc := range map[string]struct {
		framing framing
		body    string
	}{
		"by length":          {framing{kind: counted, left: 5}, "hello"},
		"one chunk":          {framing{kind: chunked}, "5\r\nhello\r\n0\r\n\r\n"},
		"no chunk":           {framing{kind: chunked}, "0\r\n\r\n"},
		"several chunks":     {framing{kind: chunked}, "5\r\nhello\r\n00aF\r\n" + strings.Repeat("x", 0xaf) + "\r\n000\r\n\r\n"},
		"data like framing":  {framing{kind: chunked}, "5\r\n0\r\n\r\n\r\n0\r\n\r\n"},
		"an extension":       {framing{kind: chunked}, "5;a=\"b\"; c\r\nhello\r\n0;x\r\n\r\n"},
		"trailers":           {framing{kind: chunked}, "0\r\nX-Sum: 42\r\nY:\r\n\r\n"},
		"trailers like data": {framing{kind: chunked}, "2\r\nab\r\n0\r\nContent-Lengthy: 5\r\nTE: x\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range len(tc.body) + 1 {
				n, over, err := takeCut(tc.framing, tc.body+next, cut)
				if n != len(tc.body) || !over || err != nil {
					t.Fatalf("cut at %d: %d of %d bytes, over = %v, %v", cut, n, len(tc.body), over, err)
				}
			}
		})
	}
}

func TestBadChunksAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"no size":                           "\r\nhello",
		"a size that is none":               "xyz\r\n",
		"a sign":                            "+5\r\nhello\r\n",
		"a prefix":                          "0x5\r\nhello\r\n",
		"a size that wraps":                 "10000000000000005\r\nhello\r\n",
		"a space before the size":           " 5\r\nhello\r\n",
		"a space behind the size":           "5 \r\nhello\r\n",
		"a bare LF behind the size":         "5\nhello\r\n0\r\n\r\n",
		"a bare CR behind the size":         "5\rhello\r\n0\r\n\r\n",
		"a bare LF in an extension":         "5;a\nhello\r\n0\r\n\r\n",
		"a bare CR in an extension":         "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"a NUL in an extension":             "5;a\x00\r\nhello\r\n",
		"an extension of any length":        "5;" + strings.Repeat("a", maxExtension+1) + "\r\nhello\r\n",
		"an extension of no size":           ";a\r\n\r\n",
		"data longer than told":             "4\r\nhello\r\n",
		"data shorter than told":            "6\r\nhello\r\n0\r\n\r\n",
		"a bare LF behind the data":         "5\r\nhello\n0\r\n\r\n",
		"a trailer that is a length":        "0\r\nContent-Length: 5\r\n\r\n",
		"a trailer that is a coding":        "0\r\nTRANSFER-encoding: chunked\r\n\r\n",
		"a trailer that is a host":          "0\r\nHost: b\r\n\r\n",
		"a trailer without a colon":         "0\r\nX\r\n\r\n",
		"a trailer with a space":            "0\r\nX : y\r\n\r\n",
		"a trailer that goes on":            "0\r\nX: y\r\n z\r\n\r\n",
		"a trailer with a bare LF":          "0\r\nX: y\nZ: 1\r\n\r\n",
		"a trailer with a bare CR":          "0\r\nX: y\rZ: 1\r\n\r\n",
		"a trailer without a name":          "0\r\n: y\r\n\r\n",
		"a bare LF that ends it":            "0\r\n\n",
		"a bare CR that ends it":            "0\r\n\rX",
		"trailers of any length":            "0\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 20) + "\r\n",
		"trailers of any number, all empty": "0\r\n" + strings.Repeat("XY:\r\n", maxTrailers) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range min(len(body), 64) {
				if _, over, err := takeCut(framing{kind: chunked}, body, cut); err == nil || over {
					t.Fatalf("cut at %d: over = %v, %v", cut, over, err)
				}
			}
		})
	}
}

func FuzzChunksEndWhereNetHTTPEndsThem(f *testing.F) {
	for _, seed := range []string{"5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "1;x\r\na\r\n00\r\nA: b\r\n\r\nrest", "fff\r\n"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, body string, cut int) {
		if cut < 0 || cut > len(body) {
			cut = 0
		}
		n, over, err := takeCut(framing{kind: chunked}, body, cut)
		whole, overWhole, errWhole := takeCut(framing{kind: chunked}, body, len(body))
		if (err == nil) != (errWhole == nil) || err == nil && (n != whole || over != overWhole) {
			t.Fatalf("cut at %d: %d %v %v, whole: %d %v %v", cut, n, over, err, whole, overWhole, errWhole)
		}
		if !over || err != nil {
			return
		}
		// What ends here ends there: the reader of net/http stops before the trailers.
		rest := strings.NewReader(body)
		if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(rest)); err != nil {
			t.Fatalf("net/http refuses %q: %v", body[:n], err)
		}
	})
}
