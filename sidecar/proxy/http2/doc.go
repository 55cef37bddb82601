// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package http2 passes HTTP/2 without TLS (RFC 9113, prior knowledge, as gRPC speaks it) from one client connection to one
// application connection, frame by frame. Every stream is decided on its own.
//
// The two connections have their own header compression and their own stream numbers. Flow control is between the client
// and the application: the bytes of DATA frames are passed on as they come, and so are the windows that each grants, so that
// neither side can make the sidecar hold more than it has granted, and the sidecar can hold nobody up. What the sidecar
// itself says (denials) is charged to the client's window and paid back out of its next grant. When one of the two
// connections takes no more, the other is not read.
//
// Frames are checked in frame.go and header lists in fields.go, both pure; the connection runs on a loop and is not safe for
// concurrent use. golang.org/x/net/http2 has the compression and the numbers; its Framer reads from blocking connections only.
package http2
