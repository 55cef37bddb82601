// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy stands in front of one application port: it reads a request's head, has it decided, and passes the
// bytes on to the application on loopback or answers the denial.
//
// HTTP/1.1 and HTTP/2 without TLS (prior knowledge, as gRPC speaks it) are told apart by the connection's first bytes; the
// application sees the protocol that the client spoke. Nothing is retried, rewritten or buffered: path, query, Host and
// headers arrive as sent, but for the hop-by-hop headers, and X-Forwarded-For gains the client's address.
package proxy
