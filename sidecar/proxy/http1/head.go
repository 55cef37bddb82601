// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"net/http"
	"unsafe"
)

// Head is the head of one request, as it stands in the bytes that it was read from. Its strings are those bytes: they are
// valid until the next head is read.
type Head struct {
	// Method, Path, Query and Host are what the request asks for. Path and Query are as sent, without the question mark.
	Method, Path, Query, Host string
	// Minor is the version's: 1 for HTTP/1.1, 0 for HTTP/1.0.
	Minor int

	raw    []byte // with the empty line that ends it
	fields []field
	body   framing
	keep   bool // the client may send another request on the connection
	expect bool // the client may wait for 100 before it sends the body
	// The numbers of fields, -1 when there is none.
	upgrade, forwardedFor int

	values []string // scratch of Values
}

// field is a line of the head.
type field struct {
	line  int // where it begins
	name  int // length of the name
	value int // where the value begins
	end   int // where the value ends
}

// refusal is a request that is not passed on, by the status that says why.
type refusal int

func (r refusal) Error() string { return http.StatusText(int(r)) }

// Refusals. A refused request is the last of its connection: nobody knows where the next one would begin.
const (
	errSyntax   = refusal(http.StatusBadRequest)
	errTooLarge = refusal(http.StatusRequestHeaderFieldsTooLarge)
	errCoding   = refusal(http.StatusNotImplemented)
	errTunnel   = refusal(http.StatusNotImplemented)
	errVersion  = refusal(http.StatusHTTPVersionNotSupported)
	errSlow     = refusal(http.StatusRequestTimeout)
	errGateway  = refusal(http.StatusBadGateway)
	errBusy     = refusal(http.StatusServiceUnavailable)
	// errForeign is another protocol's: there is no answer that it would understand.
	errForeign = refusal(0)
)

// findHead looks for the empty line that ends a head. line is where the first line begins that it has not seen the end of,
// to go on from when more has come; end is 0 until then. Every line ends in CRLF: a bare LF is refused at once, since
// recipients differ in whether it ends a line.
func findHead(b []byte, line int) (end, next int, err error) {
	for {
		i := bytes.IndexByte(b[line:], '\n')
		if i < 0 {
			return 0, line, nil
		}
		if i == 0 || b[line+i-1] != '\r' {
			return 0, line, errSyntax
		}
		at := line
		line += i + 1
		if i == 1 && at > 0 {
			return line, line, nil
		}
	}
}

// parse reads a whole head, as findHead has found it. Nothing in h is valid when it fails.
func (h *Head) parse(raw []byte, maxFields int) error {
	h.raw, h.fields, h.values = raw, h.fields[:0], h.values[:0]
	h.Host, h.Query, h.body, h.keep, h.expect = "", "", framing{}, true, false
	h.upgrade, h.forwardedFor = -1, -1
	next, target, err := h.requestLine(raw)
	if err != nil {
		return err
	}
	host, codings := -1, 0
	lengths := 0
	for raw[next] != '\r' {
		if len(h.fields) == maxFields {
			return errTooLarge
		}
		var f field
		if f, next, err = parseField(raw, next); err != nil {
			return err
		}
		name, value := raw[f.line:f.line+f.name], raw[f.value:f.end]
		switch f.name {
		case len("host"):
			if fold(name, "host") {
				if host >= 0 || !all(value, isHost) {
					return errSyntax
				}
				host = len(h.fields)
				h.Host = text(value)
			}
		case len("expect"):
			if fold(name, "expect") {
				h.expect = true
			}
		case len("upgrade"):
			if fold(name, "upgrade") {
				if h.upgrade >= 0 {
					return errSyntax
				}
				h.upgrade = len(h.fields)
			}
		case len("connection"):
			if fold(name, "connection") {
				h.connection(value)
			}
		case len("content-length"):
			if fold(name, "content-length") {
				lengths++
				length, ok := decimal(value)
				if !ok {
					return errSyntax
				}
				h.body = framing{kind: counted, left: length}
			} else if fold(name, "content_length") {
				return errSyntax // gateways to CGI and its heirs take it for the other
			}
		case len("x-forwarded-for"):
			if fold(name, "x-forwarded-for") {
				h.forwardedFor = len(h.fields)
			}
		case len("transfer-encoding"):
			if fold(name, "transfer-encoding") {
				codings++
				if !is(value, "chunked") {
					return errCoding
				}
			} else if fold(name, "transfer_encoding") {
				return errSyntax
			}
		}
		h.fields = append(h.fields, f)
	}
	if next+2 != len(raw) {
		return errSyntax // a CR within the head
	}
	switch {
	case codings+lengths > 1, codings > 0 && h.Minor == 0:
		return errSyntax
	case codings == 1:
		h.body = framing{kind: chunked}
	case h.body.left == 0:
		h.body = framing{}
	}
	if h.Minor == 0 && !h.keepAlive() {
		h.keep = false
	}
	if host < 0 && h.Minor == 1 {
		return errSyntax
	}
	return h.resolve(target)
}

// requestLine reads the first line and returns where the second begins.
func (h *Head) requestLine(raw []byte) (next int, target []byte, err error) {
	end := bytes.IndexByte(raw, '\r')
	line := raw[:end]
	method := bytes.IndexByte(line, ' ')
	if method < 1 || !all(line[:method], isToken) || raw[end+1] != '\n' {
		return 0, nil, errSyntax
	}
	h.Method = text(line[:method])
	line = line[method+1:]
	length := bytes.IndexByte(line, ' ')
	if length < 1 || !all(line[:length], isTarget) {
		return 0, nil, errSyntax
	}
	switch version := string(line[length+1:]); {
	case version == "HTTP/1.1":
		h.Minor = 1
	case version == "HTTP/1.0":
		h.Minor = 0
	case len(version) == len("HTTP/1.1") && version[:5] == "HTTP/" && version[6] == '.':
		return 0, nil, errVersion
	case line[0] != '/' && !bytes.HasPrefix(line[length+1:], []byte("HTTP/")):
		return 0, nil, errForeign
	default:
		return 0, nil, errSyntax
	}
	return end + 2, line[:length], nil
}

// parseField reads the line that begins at an offset, and returns where the next one does. raw ends in an empty line.
func parseField(raw []byte, line int) (f field, next int, err error) {
	i := line
	for classes[raw[i]]&isToken != 0 {
		i++
	}
	if i == line || raw[i] != ':' {
		return f, 0, errSyntax // no name, a space before the colon, or a line that continues another
	}
	f = field{line: line, name: i - line}
	value := raw[i+1:]
	end := bytes.IndexByte(value, '\r')
	if value[end+1] != '\n' || !allValue(value[:end]) {
		return f, 0, errSyntax
	}
	next = i + 1 + end + 2
	trimmed := trim(value[:end])
	f.value = i + 1 + cap(value) - cap(trimmed)
	f.end = f.value + len(trimmed)
	return f, next, nil
}

// connection reads the options of a Connection field.
func (h *Head) connection(list []byte) {
	for len(list) > 0 {
		var option []byte
		option, list = element(list)
		if is(option, "close") {
			h.keep = false
		}
	}
}

// keepAlive reports whether an HTTP/1.0 client asks for it.
func (h *Head) keepAlive() bool {
	for i := range h.fields {
		if !is(h.name(i), "connection") {
			continue
		}
		for list := h.value(i); len(list) > 0; {
			var option []byte
			if option, list = element(list); is(option, "keep-alive") {
				return true
			}
		}
	}
	return false
}

// resolve reads the target. RFC 9112, 3.2: a path; or a URL, whose authority must be the Host's, since applications differ
// in which they take; or an asterisk.
func (h *Head) resolve(target []byte) error {
	if h.Method == http.MethodConnect {
		return errTunnel // nobody would decide what is in it
	}
	switch {
	case target[0] == '/':
		h.split(target)
		return nil
	case len(target) == 1 && target[0] == '*' && h.Method == http.MethodOptions:
		h.Path = "*"
		return nil
	case len(target) > 7 && fold(target[:7], "http://"):
		target = target[7:]
	case len(target) > 8 && fold(target[:8], "https://"):
		target = target[8:]
	default:
		return errSyntax
	}
	end := bytes.IndexAny(target, "/?#")
	if end < 0 {
		end = len(target)
	}
	if end == 0 || !is(target[:end], lower(h.Host)) {
		return errSyntax
	}
	h.split(target[end:])
	switch {
	case h.Path == "":
		h.Path = "/"
	case h.Path[0] != '/':
		return errSyntax
	}
	return nil
}

// split cuts the query off.
func (h *Head) split(target []byte) {
	path, query, _ := bytes.Cut(target, []byte("?"))
	h.Path, h.Query = text(path), text(query)
}

func lower(s string) string { return string(bytes.ToLower([]byte(s))) }

func (h *Head) name(i int) []byte {
	f := h.fields[i]
	return h.raw[f.line : f.line+f.name]
}

func (h *Head) value(i int) []byte {
	f := h.fields[i]
	return h.raw[f.value:f.end]
}

// Values returns the values of a field by its canonical name, in the order of its lines.
func (h *Head) Values(name string) []string {
	begin := len(h.values)
	for i := range h.fields {
		if f := &h.fields[i]; f.name == len(name) && sameName(h.raw[f.line:f.line+f.name], name) {
			h.values = append(h.values, text(h.raw[f.value:f.end]))
		}
	}
	return h.values[begin:len(h.values):len(h.values)]
}

// sameName compares names of one length whatever the case of their letters. Both are tokens.
func sameName(b []byte, name string) bool {
	for i, c := range b {
		d := name[i]
		if c == d {
			continue
		}
		if c|0x20 != d|0x20 || c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return true
}

// text is b as a string, without a copy.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
