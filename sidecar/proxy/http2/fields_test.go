// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// list makes fields of "name value" lines.
func list(lines ...string) *fields {
	h := &fields{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		h.list = append(h.list, hpack.HeaderField{Name: name, Value: value})
	}
	return h
}

func TestRequestsAreReadFromTheirPseudoFields(t *testing.T) {
	r, ok := list(":method POST", ":scheme http", ":authority shop:80", ":path /a?b", "host Shop:80", "content-length 12", "te trailers").request()
	if !ok || r.method != "POST" || r.path != "/a?b" || r.authority != "shop:80" || r.length != 12 {
		t.Errorf("got %+v, %v", r, ok)
	}
	r, ok = list(":method GET", ":path /", ":scheme http", "host shop").request()
	if !ok || r.authority != "shop" || r.length != -1 {
		t.Errorf("without :authority: %+v, %v", r, ok)
	}
	for _, lines := range [][]string{
		{":method OPTIONS", ":scheme http", ":authority a", ":path *"},
		{":method CONNECT", ":authority a:443"},
		{":method CONNECT", ":protocol websocket", ":scheme http", ":authority a", ":path /chat"},
	} {
		if _, ok := list(lines...).request(); !ok {
			t.Errorf("%q is refused", lines)
		}
	}
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	get := func(lines ...string) []string {
		return append([]string{":method GET", ":scheme http", ":authority a", ":path /"}, lines...)
	}
	for name, lines := range map[string][]string{
		"no method":                       {":scheme http", ":authority a", ":path /"},
		"a method that is none":           {":method G T", ":scheme http", ":authority a", ":path /"},
		"no scheme":                       {":method GET", ":authority a", ":path /"},
		"no path":                         {":method GET", ":scheme http", ":authority a"},
		"an empty path":                   {":method GET", ":scheme http", ":authority a", ":path "},
		"a URL for a path":                {":method GET", ":scheme http", ":authority a", ":path http://a/"},
		"a space in the path":             {":method GET", ":scheme http", ":authority a", ":path /a HTTP/1.1"},
		"a line break in the path":        {":method GET", ":scheme http", ":authority a", ":path /\r\nX: y"},
		"an asterisk for GET":             {":method GET", ":scheme http", ":authority a", ":path *"},
		"a path for CONNECT":              {":method CONNECT", ":authority a", ":path /", ":scheme http"},
		"two paths":                       get(":path /b"),
		"a pseudo field behind a field":   {":method GET", ":scheme http", "x y", ":authority a", ":path /"},
		"an unknown pseudo field":         {":method GET", ":scheme http", ":authority a", ":path /", ":x y"},
		"an answer's pseudo field":        {":method GET", ":scheme http", ":authority a", ":path /", ":status 200"},
		"a name in upper case":            get("X-Api-Key gold"),
		"a name that is none":             get("a(b c"),
		"an empty name":                   {":method GET", ":scheme http", ":authority a", ":path /", " x"},
		"a line break in a value":         get("x a\r\nContent-Length: 5"),
		"NUL in a value":                  get("x a\x00b"),
		"a space before a value":          get("x  a"),
		"a space behind a value":          get("x a "),
		"Connection":                      get("connection close"),
		"Transfer-Encoding":               get("transfer-encoding chunked"),
		"Upgrade":                         get("upgrade websocket"),
		"Keep-Alive":                      get("keep-alive 1"),
		"Proxy-Connection":                get("proxy-connection close"),
		"TE other than trailers":          get("te gzip"),
		"two hosts":                       get("host a", "host a"),
		"a host that is not :authority":   get("host b"),
		"an authority with a user":        {":method GET", ":scheme http", ":authority x@a", ":path /"},
		"two lengths":                     get("content-length 1", "content-length 1"),
		"a length that is none":           get("content-length -1"),
		"a length in a list":              get("content-length 1, 1"),
		"a length that is longer than 18": get("content-length 1000000000000000000"),
	} {
		if r, ok := list(lines...).request(); ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestThePeerIsAddedToWhereARequestComesFrom(t *testing.T) {
	for _, tc := range []struct{ before, after []string }{
		{[]string{"x y"}, []string{"x y", "x-forwarded-for 192.0.2.1"}},
		{[]string{"x-forwarded-for 1", "x-forwarded-for 2"}, []string{"x-forwarded-for 1", "x-forwarded-for 2, 192.0.2.1"}},
		{[]string{"x-forwarded-for "}, []string{"x-forwarded-for 192.0.2.1"}},
	} {
		h := list(tc.before...)
		h.addPeer("192.0.2.1")
		want := list(tc.after...)
		for i := range max(len(h.list), len(want.list)) {
			if len(h.list) != len(want.list) || h.list[i] != want.list[i] {
				t.Errorf("%q becomes %v", tc.before, h.list)
				break
			}
		}
	}
}

func TestValuesAreFoundByTheirCanonicalName(t *testing.T) {
	h := list("x-api-key one", "x-other no", "x-api-key two")
	got := h.Values("X-Api-Key")
	if len(got) != 2 || got[0] != "one" || got[1] != "two" || len(h.Values("X-None")) != 0 {
		t.Errorf("got %q", got)
	}
}

func FuzzFramesAreCutInOnePlace(f *testing.F) {
	f.Add([]byte("\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add(appendSettings(nil))
	f.Add(appendBlock(nil, make([]byte, 3*maxPayload/2), 1, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, ok, err := cutFrame(b)
		if !ok || err != nil {
			return
		}
		if len(frame.raw) > len(b) || len(frame.payload()) > maxPayload {
			t.Fatalf("a frame of %d bytes out of %d", len(frame.raw), len(b))
		}
		if frame.check() == nil {
			if content, err := frame.content(); err == nil && len(content) > len(frame.payload()) {
				t.Fatal("the content is longer than the payload")
			}
		}
	})
}
