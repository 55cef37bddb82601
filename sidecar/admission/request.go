// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import "net/netip"

// Header finds the lines of a header by its canonical name (X-Api-Key). http.Header is one.
type Header interface {
	Values(name string) []string
}

// Request is the part of a request's head that limits look at.
type Request struct {
	Method string
	// Path is as sent: percent-encoded, without the query.
	Path string
	// Host is the value of the Host header, or of HTTP/2's :authority.
	Host   string
	Header Header
	// Peer is the address of the connection's other end.
	Peer netip.Addr
}

// lines returns the lines of a header. Host is a field of its own in net/http and in HTTP/2.
func (r *Request) lines(name string) ([]string, bool) {
	if r.Header == nil {
		return nil, false
	}
	values := r.Header.Values(name)
	return values, len(values) > 0
}
