// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"net/http"
)

// response is what has to be known of the head of an answer. The application is trusted further than clients are: lines may
// end in LF alone, and values may hold what they like.
type response struct {
	status   int
	body     framing
	keep     bool // the application keeps the connection
	switched bool // 101: from here on it is another protocol
}

// interim reports whether another answer to the same request follows.
func (r *response) interim() bool {
	return r.status < 200 && !r.switched
}

// findResponse looks for the empty line that ends a head, as findHead does.
func findResponse(b []byte, line int) (end, next int) {
	for {
		i := bytes.IndexByte(b[line:], '\n')
		if i < 0 {
			return 0, line
		}
		empty := i == 0 || i == 1 && b[line] == '\r'
		line += i + 1
		if empty && line > i+1 {
			return line, line
		}
	}
}

// parseResponse reads a whole head, as findResponse has found it, of the answer to a request with or without the method HEAD.
func parseResponse(raw []byte, toHead bool) (r response, err error) {
	line, rest := cutLine(raw)
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || line[7] < '0' || line[7] > '1' || len(line) > 12 && line[12] != ' ' {
		return r, errGateway
	}
	status, ok := decimal(line[9:12])
	if !ok || status < 100 {
		return r, errGateway
	}
	r.status = int(status)
	r.switched = r.status == http.StatusSwitchingProtocols
	old := line[7] == '0'
	var closes, keeps, isChunked, coded, counts bool
	var length uint64
	for {
		if line, rest = cutLine(rest); len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			continue // the line before goes on
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 {
			return r, errGateway
		}
		name, value := line[:colon], trim(line[colon+1:])
		switch len(name) {
		case len("connection"):
			if !fold(name, "connection") {
				continue
			}
			for len(value) > 0 {
				var option []byte
				option, value = element(value)
				closes = closes || is(option, "close")
				keeps = keeps || is(option, "keep-alive")
			}
		case len("content-length"):
			if !fold(name, "content-length") {
				continue
			}
			n, ok := decimal(value)
			if !ok || counts && n != length {
				return r, errGateway
			}
			counts, length = true, n
		case len("transfer-encoding"):
			if !fold(name, "transfer-encoding") {
				continue
			}
			coded = true
			for len(value) > 0 {
				var coding []byte
				coding, value = element(value)
				isChunked = is(coding, "chunked") // the last one counts
			}
		}
	}
	r.keep = !closes && (!old || keeps)
	switch {
	case toHead, r.status < 200, r.status == http.StatusNoContent, r.status == http.StatusNotModified:
	case isChunked:
		r.body = framing{kind: chunked}
	case coded, !counts:
		r.body = framing{kind: untilEnd}
		r.keep = false
	case length > 0:
		r.body = framing{kind: counted, left: length}
	}
	return r, nil
}

// lines is an answer's header, or its trailer, as it came.
type lines []byte

// Values implements admission.Header. What it returns is a copy.
func (l lines) Values(name string) []string {
	var out []string
	for rest := []byte(l); bytes.IndexByte(rest, '\n') >= 0; {
		var line []byte
		line, rest = cutLine(rest)
		if colon := bytes.IndexByte(line, ':'); colon > 0 && bytes.EqualFold(line[:colon], []byte(name)) {
			out = append(out, string(trim(line[colon+1:])))
		}
	}
	return out
}

// cutLine cuts the first line off, without what ends it.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	line, rest = b[:i], b[i+1:]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest
}

// appendResponse appends a head with further lines. last says that the connection ends after the answer; then the lines
// that say otherwise are left out.
func appendResponse(dst, raw, lines []byte, last bool) []byte {
	line := raw[:bytes.IndexByte(raw, '\n')+1]
	dst = append(dst, line...)
	dropped := false
	for rest := raw[len(line):]; ; rest = rest[len(line):] {
		line = rest[:bytes.IndexByte(rest, '\n')+1]
		if len(line) <= 2 && (line[0] == '\n' || line[0] == '\r') {
			dst = append(dst, lines...)
			if last {
				dst = append(dst, "Connection: close\r\n"...)
			}
			return append(dst, line...)
		}
		if line[0] != ' ' && line[0] != '\t' {
			name := line[:max(0, bytes.IndexByte(line, ':'))]
			dropped = last && (is(name, "connection") || is(name, "keep-alive"))
		}
		if !dropped {
			dst = append(dst, line...)
		}
	}
}
