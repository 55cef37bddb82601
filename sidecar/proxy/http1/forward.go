// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http1

import "strings"

// appendForwarded appends the head as the application gets it: as the client sent it, but that X-Forwarded-For names the
// peer, and that the client does not ask for a protocol in which further requests would come undecided.
func (h *Head) appendForwarded(dst []byte, peer string) []byte {
	lines := len(h.raw) - len("\r\n")
	from := 0
	if h.upgrade >= 0 && carriesRequests(text(h.value(h.upgrade))) {
		dst, from = h.appendWithoutUpgrade(dst), lines
	}
	if i := h.forwardedFor; i >= 0 && from == 0 && peer != "" {
		end := h.fields[i].end
		dst = append(dst, h.raw[:end]...)
		if h.fields[i].value < end {
			dst = append(dst, ',')
		}
		dst = append(dst, ' ')
		dst = append(dst, peer...)
		return append(dst, h.raw[end:]...)
	}
	dst = append(dst, h.raw[from:lines]...)
	if peer != "" {
		dst = append(dst, "X-Forwarded-For: "...)
		dst = append(dst, peer...)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendWithoutUpgrade appends the lines, but for those that ask for another protocol. h no longer has an Upgrade then.
func (h *Head) appendWithoutUpgrade(dst []byte) []byte {
	h.upgrade = -1
	if len(h.fields) == 0 {
		return dst
	}
	dst = append(dst, h.raw[:h.fields[0].line]...)
	for i := range h.fields {
		name := h.name(i)
		if is(name, "upgrade") || is(name, "connection") || is(name, "http2-settings") {
			continue
		}
		end := len(h.raw) - len("\r\n")
		if i+1 < len(h.fields) {
			end = h.fields[i+1].line
		}
		dst = append(dst, h.raw[h.fields[i].line:end]...)
	}
	if !h.keep {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return dst
}

// carriesRequests reports whether a connection that is upgraded to a protocol would bring further requests that nobody
// decides: HTTP/2 without TLS, other versions of HTTP, TLS. Servers may ignore an Upgrade, and so it is dropped: the request
// is served as it is. A client that wants HTTP/2 begins with it.
func carriesRequests(upgrade string) bool {
	for protocol := range strings.SplitSeq(strings.ToLower(upgrade), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
		switch name {
		case "h2c", "h2", "http", "tls":
			return true
		}
	}
	return false
}
