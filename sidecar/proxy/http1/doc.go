// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package http1 passes HTTP/1.x requests from one client connection to one application connection. Of each request it
// reads the head, has it decided, and from there on only counts bytes (RFC 9112).
//
// Whatever could be read in two ways is refused, so that the application finds the same requests in what it gets as were
// decided here. The answers are the application's, byte for byte, but for the lines that the sidecar has to add.
//
// The parsers and the framing of bodies (head.go, response.go, body.go) are pure: bytes in, numbers out. The connection
// (conn.go and what follows it) runs on a loop and is not safe for concurrent use.
package http1
