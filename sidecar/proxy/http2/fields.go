// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// fields are a list of header fields, pseudo fields first.
type fields struct {
	list   []hpack.HeaderField
	size   int // as RFC 9113 counts it
	values []string
}

func (h *fields) reset() { h.list, h.size, h.values = h.list[:0], 0, h.values[:0] }

// Values returns the values of a field by its canonical name (X-Api-Key).
func (h *fields) Values(name string) []string {
	begin := len(h.values)
	for i := range h.list {
		if f := &h.list[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			h.values = append(h.values, f.Value)
		}
	}
	return h.values[begin:len(h.values):len(h.values)]
}

// request is what a list says of a request.
type request struct {
	method, path, authority string
	host                    int   // the number of the Host field, -1 without one
	length                  int64 // of the body, -1 when it is not told
}

// Pseudo fields of a request.
const (
	method = 1 << iota
	scheme
	authority
	path
	protocol // RFC 8441
)

func pseudo(name string) int {
	switch name {
	case ":method":
		return method
	case ":scheme":
		return scheme
	case ":authority":
		return authority
	case ":path":
		return path
	case ":protocol":
		return protocol
	}
	return 0
}

// request reads the list of a request, and reports whether it is one (RFC 9113, 8.2 and 8.3).
func (h *fields) request() (r request, ok bool) {
	r.host, r.length = -1, -1
	seen, regular := 0, false
	for i := range h.list {
		f := &h.list[i]
		if strings.HasPrefix(f.Name, ":") {
			which := pseudo(f.Name)
			if regular || which == 0 || seen&which != 0 || !validValue(f.Value) {
				return r, false
			}
			seen |= which
			switch which {
			case method:
				r.method = f.Value
			case path:
				r.path = f.Value
			case authority:
				r.authority = f.Value
			}
			continue
		}
		regular = true
		if !h.regular(i) {
			return r, false
		}
		switch f.Name {
		case "host":
			if r.host >= 0 || !httpguts.ValidHostHeader(f.Value) {
				return r, false
			}
			r.host = i
		case "content-length":
			if r.length >= 0 {
				return r, false
			}
			if r.length, ok = contentLength(f.Value); !ok {
				return r, false
			}
		}
	}
	if r.host >= 0 {
		// Applications differ in which of the two they take.
		if host := h.list[r.host].Value; seen&authority == 0 {
			r.authority = host
		} else if !strings.EqualFold(r.authority, host) {
			return r, false
		}
	}
	if !token(r.method) || !httpguts.ValidHostHeader(r.authority) {
		return r, false
	}
	if r.method == "CONNECT" && seen&protocol == 0 {
		return r, r.authority != "" && seen == method|authority
	}
	return r, seen&scheme != 0 && validPath(r.method, r.path)
}

func validPath(method, path string) bool {
	if path == "*" {
		return method == "OPTIONS"
	}
	return strings.HasPrefix(path, "/") && !strings.ContainsAny(path, " \t")
}

// trailers reports whether the list may follow a body.
func (h *fields) trailers() bool {
	for i := range h.list {
		if strings.HasPrefix(h.list[i].Name, ":") || !h.regular(i) {
			return false
		}
	}
	return true
}

// regular reports whether a field that is no pseudo field may stand in a message.
func (h *fields) regular(i int) bool {
	f := &h.list[i]
	if !validName(f.Name) || !validValue(f.Value) {
		return false
	}
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return false
	case "te":
		return f.Value == "trailers"
	}
	return true
}

func token(s string) bool {
	for i := range len(s) {
		if !httpguts.IsTokenRune(rune(s[i])) {
			return false
		}
	}
	return s != ""
}

func validName(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return false
		}
	}
	return token(s)
}

func validValue(s string) bool {
	if s == "" {
		return true
	}
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return !blank(s[0]) && !blank(s[len(s)-1]) && httpguts.ValidHeaderFieldValue(s)
}

func contentLength(s string) (int64, bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// addPeer has the list tell where the request comes from: X-Forwarded-For gains the peer.
func (h *fields) addPeer(peer string) {
	if peer == "" {
		return
	}
	for i := len(h.list) - 1; i >= 0; i-- {
		if f := &h.list[i]; f.Name == "x-forwarded-for" {
			if f.Value != "" {
				peer = f.Value + ", " + peer
			}
			h.list[i].Value = peer
			return
		}
	}
	h.list = append(h.list, hpack.HeaderField{Name: "x-forwarded-for", Value: peer})
}

// status is the status of an answer, 0 when the list is none.
func (h *fields) status() int {
	if len(h.list) == 0 || h.list[0].Name != ":status" {
		return 0
	}
	n, err := strconv.Atoi(h.list[0].Value)
	if err != nil {
		return 0
	}
	return n
}
