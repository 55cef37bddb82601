// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package respond decides the answer to a request that a limit denied, in the form that the client understands: HTTP with
// a problem document, or gRPC with a status.
//
// Only a limit's denial is answered here. A failure of the sidecar or of the application is never a 429.
package respond

import (
	"strings"
	"time"
)

// Denial says which limits denied a request, and when asking again makes sense.
type Denial struct {
	// Limits are the names of the limits that denied, as policy/limit.
	Limits []string
	// RetryAfter is how long until all of them would grant; 0 or less when that cannot be known.
	RetryAfter time.Duration
}

// Deny is the answer to a request that limits denied.
func Deny(to Asker, d Denial) Answer {
	if isGRPC(to.ContentType) {
		return denyGRPC(d)
	}
	return denyHTTP(to, d)
}

// rateLimitedHeader tells meshes that the answer is a quota's, so that they do not retry it.
const rateLimitedHeader = "X-Envoy-Ratelimited"

// unknownRetry is asked for where nobody can know when a token will be there, as without a share.
const unknownRetry = time.Second

// retryDelay is the denial's RetryAfter, never below what HTTP can say at least.
func (d Denial) retryDelay() time.Duration {
	if d.RetryAfter <= 0 {
		return unknownRetry
	}
	return d.RetryAfter
}

// retrySeconds rounds up: a client that comes back at the second named must find the token there.
func (d Denial) retrySeconds() int64 {
	delay := d.retryDelay()
	seconds := int64(delay / time.Second)
	if delay%time.Second > 0 {
		seconds++
	}
	return seconds
}

// isGRPC reports whether a content type is gRPC's own. gRPC-Web and Connect speak HTTP statuses.
func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(contentType), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
