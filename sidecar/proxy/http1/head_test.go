// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read parses a head as a connection does.
func read(t testing.TB, raw string) (*Head, error) {
	t.Helper()
	end, _, err := findHead([]byte(raw), 0)
	if err != nil {
		return nil, err
	}
	if end != len(raw) {
		t.Fatalf("the head of %q ends at %d", raw, end)
	}
	h := &Head{}
	return h, h.parse([]byte(raw), 64)
}

func crlf(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func TestWhatIsDecidedIsWhatIsSent(t *testing.T) {
	for name, tc := range map[string]struct {
		head               string
		method, path, host string
		body               framing
		keep               bool
		forwarded          string
	}{
		"a plain request": {
			head:   crlf("GET /a/b?c=d HTTP/1.1", "Host: shop:8080"),
			method: "GET", path: "/a/b", host: "shop:8080", keep: true,
			forwarded: crlf("GET /a/b?c=d HTTP/1.1", "Host: shop:8080", "X-Forwarded-For: 192.0.2.1"),
		},
		"names in any case, values with spaces around": {
			head:   crlf("POST / HTTP/1.1", "hOsT:\t a \t", "content-LENGTH: 12 ", "x-forwarded-for: 198.51.100.7 ", "Connection: TE , Close"),
			method: "POST", path: "/", host: "a", body: framing{kind: counted, left: 12},
			forwarded: crlf("POST / HTTP/1.1", "hOsT:\t a \t", "content-LENGTH: 12 ", "x-forwarded-for: 198.51.100.7, 192.0.2.1 ", "Connection: TE , Close"),
		},
		"the last of several X-Forwarded-For is the nearest": {
			head:   crlf("GET / HTTP/1.1", "Host: a", "X-Forwarded-For: 1", "X-Forwarded-For:", "A: b"),
			method: "GET", path: "/", host: "a", keep: true,
			forwarded: crlf("GET / HTTP/1.1", "Host: a", "X-Forwarded-For: 1", "X-Forwarded-For: 192.0.2.1", "A: b"),
		},
		"a chunked body": {
			head:   crlf("PUT /x HTTP/1.1", "Host: a", "Transfer-Encoding: Chunked"),
			method: "PUT", path: "/x", host: "a", body: framing{kind: chunked}, keep: true,
			forwarded: crlf("PUT /x HTTP/1.1", "Host: a", "Transfer-Encoding: Chunked", "X-Forwarded-For: 192.0.2.1"),
		},
		"HTTP/1.0 without Host": {
			head:   crlf("GET /old HTTP/1.0"),
			method: "GET", path: "/old",
			forwarded: crlf("GET /old HTTP/1.0", "X-Forwarded-For: 192.0.2.1"),
		},
		"HTTP/1.0 that keeps the connection": {
			head:   crlf("GET /old HTTP/1.0", "Connection: Keep-Alive"),
			method: "GET", path: "/old", keep: true,
			forwarded: crlf("GET /old HTTP/1.0", "Connection: Keep-Alive", "X-Forwarded-For: 192.0.2.1"),
		},
		"a URL with the same host": {
			head:   crlf("GET http://Shop/a?b HTTP/1.1", "Host: shop"),
			method: "GET", path: "/a", host: "shop", keep: true,
			forwarded: crlf("GET http://Shop/a?b HTTP/1.1", "Host: shop", "X-Forwarded-For: 192.0.2.1"),
		},
		"a URL without a path": {
			head:   crlf("GET https://shop?b HTTP/1.1", "Host: shop"),
			method: "GET", path: "/", host: "shop", keep: true,
			forwarded: crlf("GET https://shop?b HTTP/1.1", "Host: shop", "X-Forwarded-For: 192.0.2.1"),
		},
		"options of the whole server": {
			head:   crlf("OPTIONS * HTTP/1.1", "Host: a"),
			method: "OPTIONS", path: "*", host: "a", keep: true,
			forwarded: crlf("OPTIONS * HTTP/1.1", "Host: a", "X-Forwarded-For: 192.0.2.1"),
		},
		"bytes that should have been encoded": {
			head:   crlf("GET /\xc3\xbc|\"[]^{}` HTTP/1.1", "Host: a", "X: \xff\ty"),
			method: "GET", path: "/\xc3\xbc|\"[]^{}`", host: "a", keep: true,
			forwarded: crlf("GET /\xc3\xbc|\"[]^{}` HTTP/1.1", "Host: a", "X: \xff\ty", "X-Forwarded-For: 192.0.2.1"),
		},
		"an upgrade to WebSocket": {
			head:   crlf("GET /chat HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket"),
			method: "GET", path: "/chat", host: "a", keep: true,
			forwarded: crlf("GET /chat HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "X-Forwarded-For: 192.0.2.1"),
		},
		"an upgrade that would bring undecided requests": {
			head:   crlf("GET / HTTP/1.1", "Upgrade: foo, h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAM", "X-Forwarded-For: 1", "Host: a"),
			method: "GET", path: "/", host: "a", keep: true,
			forwarded: crlf("GET / HTTP/1.1", "X-Forwarded-For: 1", "Host: a", "X-Forwarded-For: 192.0.2.1"),
		},
		"a length of nothing": {
			head:   crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 0"),
			method: "POST", path: "/", host: "a", keep: true,
			forwarded: crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 0", "X-Forwarded-For: 192.0.2.1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := read(t, tc.head)
			if err != nil {
				t.Fatal(err)
			}
			if h.Method != tc.method || h.Path != tc.path || h.Host != tc.host || h.body != tc.body || h.keep != tc.keep {
				t.Errorf("decided by %s %s of %s, body %+v, keep %v", h.Method, h.Path, h.Host, h.body, h.keep)
			}
			if diff := cmp.Diff(tc.forwarded, string(h.appendForwarded(nil, "192.0.2.1"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each of these is read in two ways by some pair of programs, or has been a hole in one.
func TestWhatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	post := func(lines ...string) string {
		return crlf(append([]string{"POST / HTTP/1.1", "Host: a"}, lines...)...)
	}
	for name, tc := range map[string]struct {
		head string
		want refusal
	}{
		"a length and chunks (CL.TE, TE.CL)":   {post("Content-Length: 4", "Transfer-Encoding: chunked"), errSyntax},
		"chunks and a length":                  {post("Transfer-Encoding: chunked", "Content-Length: 4"), errSyntax},
		"two codings (TE.TE)":                  {post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), errSyntax},
		"a coding that hides (TE.TE)":          {post("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), errCoding},
		"a list of codings":                    {post("Transfer-Encoding: gzip, chunked"), errCoding},
		"a coding with a parameter":            {post("Transfer-Encoding: chunked;a=b"), errCoding},
		"a coding in quotes":                   {post(`Transfer-Encoding: "chunked"`), errCoding},
		"a coding that is almost chunked":      {post("Transfer-Encoding: xchunked"), errCoding},
		"an empty coding":                      {post("Transfer-Encoding:"), errCoding},
		"a vertical tab before the coding":     {post("Transfer-Encoding: \x0bchunked"), errSyntax},
		"a space before the colon":             {post("Transfer-Encoding : chunked"), errSyntax},
		"a tab before the colon":               {post("Content-Length\t: 4"), errSyntax},
		"a space before the name":              {post("X: y", " Transfer-Encoding: chunked"), errSyntax},
		"a first line that continues nothing":  {crlf("GET / HTTP/1.1", " Host: a"), errSyntax},
		"a folded value":                       {post("X: y", "\tz"), errSyntax},
		"an underscore for a dash, chunks":     {post("Transfer_Encoding: chunked"), errSyntax},
		"an underscore for a dash, length":     {post("content_length: 4"), errSyntax},
		"no name":                              {post(": 4"), errSyntax},
		"a line without a colon":               {post("Content-Length"), errSyntax},
		"two lengths that differ":              {post("Content-Length: 4", "Content-Length: 5"), errSyntax},
		"two lengths that do not":              {post("Content-Length: 4", "Content-Length: 4"), errSyntax},
		"a list of lengths":                    {post("Content-Length: 4, 4"), errSyntax},
		"a length with a sign":                 {post("Content-Length: +4"), errSyntax},
		"a negative length":                    {post("Content-Length: -1"), errSyntax},
		"a hexadecimal length":                 {post("Content-Length: 0x4"), errSyntax},
		"a length with an underscore":          {post("Content-Length: 1_0"), errSyntax},
		"a length that wraps":                  {post("Content-Length: 18446744073709551620"), errSyntax},
		"an empty length":                      {post("Content-Length:"), errSyntax},
		"a length in other digits":             {post("Content-Length: \xd9\xa4"), errSyntax},
		"chunks in HTTP/1.0":                   {crlf("POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"), errSyntax},
		"two hosts":                            {crlf("GET / HTTP/1.1", "Host: a", "Host: b"), errSyntax},
		"no host":                              {crlf("GET / HTTP/1.1", "X: y"), errSyntax},
		"a host with a path":                   {crlf("GET / HTTP/1.1", "Host: a/b"), errSyntax},
		"a host with a user":                   {crlf("GET / HTTP/1.1", "Host: x@a"), errSyntax},
		"a URL with another host":              {crlf("GET http://b/ HTTP/1.1", "Host: a"), errSyntax},
		"a URL with a user":                    {crlf("GET http://x@a/ HTTP/1.1", "Host: a"), errSyntax},
		"a URL without a host":                 {crlf("GET http:///x HTTP/1.1", "Host: a"), errSyntax},
		"a URL of another scheme":              {crlf("GET ftp://a/ HTTP/1.1", "Host: a"), errSyntax},
		"a URL in HTTP/1.0 without Host":       {crlf("GET http://a/ HTTP/1.0"), errSyntax},
		"a target without a slash":             {crlf("GET x HTTP/1.1", "Host: a"), errSyntax},
		"an asterisk for GET":                  {crlf("GET * HTTP/1.1", "Host: a"), errSyntax},
		"a tunnel":                             {crlf("CONNECT a:443 HTTP/1.1", "Host: a:443"), errTunnel},
		"a space in the target":                {crlf("GET /a b HTTP/1.1", "Host: a"), errSyntax},
		"two spaces":                           {crlf("GET  / HTTP/1.1", "Host: a"), errSyntax},
		"a tab for a space":                    {crlf("GET\t/ HTTP/1.1", "Host: a"), errSyntax},
		"a space behind the version":           {crlf("GET / HTTP/1.1 ", "Host: a"), errSyntax},
		"no version":                           {crlf("GET /", "Host: a"), errSyntax},
		"a version in lower case":              {crlf("GET / http/1.1", "Host: a"), errSyntax},
		"another version":                      {crlf("GET / HTTP/2.0", "Host: a"), errVersion},
		"a version to come":                    {crlf("GET / HTTP/1.2", "Host: a"), errVersion},
		"words of another protocol":            {crlf("INVALID CONNECTION PREFACE"), errForeign},
		"a method that is none":                {crlf("G(T / HTTP/1.1", "Host: a"), errSyntax},
		"no method":                            {crlf(" / HTTP/1.1", "Host: a"), errSyntax},
		"NUL in a value":                       {post("X: a\x00b"), errSyntax},
		"NUL in a name":                        {post("X\x00: b"), errSyntax},
		"DEL in a value":                       {post("X: aaaaaaa\x7faaaaaaaa"), errSyntax},
		"a CR in a value":                      {post("X: a\rContent-Length: 4"), errSyntax},
		"a CR before a name":                   {post("\rX: a"), errSyntax},
		"a CR in the target":                   {crlf("GET /\rx HTTP/1.1", "Host: a"), errSyntax},
		"a bare LF for CRLF":                   {"GET / HTTP/1.1\nHost: a\r\n\r\n", errSyntax},
		"a bare LF between lines":              {post("X: y\nContent-Length: 4"), errSyntax},
		"a bare LF that ends the head":         {"GET / HTTP/1.1\r\nHost: a\r\n\n", errSyntax},
		"two Upgrade lines, one of them h2c":   {post("Upgrade: websocket", "Upgrade: h2c"), errSyntax},
		"more lines than allowed":              {post(strings.Repeat("A: b\r\n", 63) + "A: b"), errTooLarge},
		"an empty line before the request":     {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", errSyntax}, // the connection skips one
		"a length of a folded line":            {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 4\r\n\r\n", errSyntax},
		"an authority for a target":            {crlf("GET a:80 HTTP/1.1", "Host: a:80"), errSyntax},
		"a second request in the request line": {crlf("GET / HTTP/1.1 HTTP/1.1", "Host: a"), errSyntax},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := read(t, tc.head)
			var got refusal
			if !errors.As(err, &got) || got != tc.want {
				t.Errorf("%q: %v, want %d; head %+v", tc.head, err, tc.want, h)
			}
		})
	}
}

func TestValuesAreFoundWhateverTheCaseOfTheName(t *testing.T) {
	h, err := read(t, crlf("GET / HTTP/1.1", "Host: a", "x-api-key:  one ", "X-API-KEY: two", "X-Api-Kez: no", "X_Api_Key: no", "Empty:"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := h.Values("X-Api-Key"), h.Values("Empty")
	if diff := cmp.Diff([]string{"one", "two"}, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{""}, second); diff != "" {
		t.Error(diff)
	}
	if got := h.Values("Absent"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if http.CanonicalHeaderKey("x-api-key") != "X-Api-Key" {
		t.Error("the engine asks by another form of the name")
	}
}

func TestReadingAHeadAllocatesNothing(t *testing.T) {
	raw := []byte(crlf("GET /v1/items?page=2 HTTP/1.1", "Host: shop.example", "User-Agent: test", "Accept: */*", "X-Api-Key: gold", "Cookie: a=b"))
	h := &Head{}
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if err := h.parse(raw, 64); err != nil {
			t.Fatal(err)
		}
		if len(h.Values("X-Api-Key")) != 1 {
			t.Fatal("no key")
		}
		out = h.appendForwarded(out[:0], "192.0.2.1")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHead(b *testing.B) {
	raw := []byte(crlf("GET /v1/items?page=2 HTTP/1.1", "Host: shop.example", "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Accept: */*", "X-Api-Key: gold", "Cookie: session=0123456789abcdef"))
	h := &Head{}
	out := make([]byte, 0, 4096)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, _, err := findHead(raw, 0); err != nil {
			b.Fatal(err)
		}
		if err := h.parse(raw, 64); err != nil {
			b.Fatal(err)
		}
		out = h.appendForwarded(out[:0], "192.0.2.1")
	}
}
