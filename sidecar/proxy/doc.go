// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy stands in front of one application port: it reads a request's head, has it decided, and passes the
// bytes on to the application on loopback or answers the denial.
//
// A connection's first bytes tell its protocol (greeting.go), and from there on it belongs to http1, http2 or passthrough.
// Each has a connection of its own to the application, which sees the protocol that the client spoke. Nothing is rewritten:
// path, query, Host and fields arrive as sent, but that X-Forwarded-For gains the client's address.
//
// The connections of a listener are spread over a few event loops (lane.go), which share nothing but the engine.
package proxy
