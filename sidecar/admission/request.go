// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/netip"
	"strings"

	"github.com/headgate/headgate/api/expression"
)

// Header finds the lines of a header by its canonical name (X-Api-Key). http.Header is one.
type Header interface {
	Values(name string) []string
}

// Request is the part of a request's head that limits look at.
type Request struct {
	Method string
	// Path is as sent: percent-encoded, without the query.
	Path string
	// Query is as sent, without the question mark.
	Query string
	// Host is the value of the Host header, or of HTTP/2's :authority.
	Host   string
	Header Header
	// Peer is the address of the connection's other end.
	Peer netip.Addr
	// Hits multiplies the cost, for doors that ask for several requests at once; 0 is 1.
	Hits uint64
	// Instead replaces the numbers of every limit that counts the request; nil for the policy's own.
	Instead *Numbers
}

// lines returns the lines of a header. Host is a field of its own in net/http and in HTTP/2.
func (r *Request) lines(name string) ([]string, bool) {
	if r.Header == nil {
		return nil, false
	}
	values := r.Header.Values(name)
	return values, len(values) > 0
}

// first returns the first line of a header by its canonical name, the host among them.
func (r *Request) first(name string) (string, bool) {
	if name == hostHeader {
		return r.Host, r.Host != ""
	}
	lines, ok := r.lines(name)
	if !ok {
		return "", false
	}
	return lines[0], true
}

// reading is a request with what limits read of it.
type reading struct {
	*Request
	paths paths
	// variables are those of the template that matched last, in its order.
	variables []variable
}

type variable struct{ name, value string }

func read(r *Request) reading {
	return reading{Request: r, paths: readPath(r.Path)}
}

// host is the request's host in small letters and without a port.
func (r *reading) host() string {
	host := r.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

const contentType = "Content-Type"

// grpc reports whether the request is a call of gRPC.
func (r *reading) grpc() bool {
	value, _ := r.first(contentType)
	return IsGRPC(value)
}

// IsGRPC reports whether a content type is gRPC's own. gRPC-Web and Connect speak HTTP statuses.
func IsGRPC(contentType string) bool {
	const want = "application/grpc"
	if len(contentType) < len(want) || !strings.EqualFold(contentType[:len(want)], want) {
		return false
	}
	rest := contentType[len(want):]
	return rest == "" || rest[0] == '+' || rest[0] == ';'
}

// facts are the request for an expression. They hold on to the request alone, so that a reading can live on the stack.
func (r *reading) facts() *expression.Request {
	request := r.Request
	return &expression.Request{
		Method: request.Method,
		Path:   r.paths.strict,
		Host:   r.host(),
		Peer:   request.Peer.Unmap().String(),
		Header: func(name string) (string, bool) { return request.first(canonical(name)) },
		Query:  func(name string) (string, bool) { return firstParameter(request.Query, name) },
	}
}
