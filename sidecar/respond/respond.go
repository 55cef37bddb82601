// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package respond decides the answer to a request that a limit denied, in the form that the client understands: HTTP with
// a problem document or the policy's own body, or gRPC with a status; and what an admitted request's answer tells of limits.
//
// Only a limit's denial is answered as one. A failure of the sidecar or of the application is never a 429.
package respond

import (
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

// To is the answer to a request that was not allowed.
func To(asker Asker, d *admission.Decision) Answer {
	if d.Unavailable {
		return Unavailable(asker)
	}
	n := denial{
		limits:  d.Names(),
		refusal: d.Refusal,
		wait:    d.RetryAfter,
		fields:  Standing(d),
		style:   d.Response,
	}
	if admission.IsGRPC(asker.ContentType) {
		return denyGRPC(n)
	}
	return denyHTTP(asker, n)
}

// denial is what an answer says of a decision.
type denial struct {
	limits  []string // that denied, as policy/limit
	refusal admission.Refusal
	wait    time.Duration // until all of them would grant; 0 or less, or limiter.Never, when that cannot be known
	fields  []Field       // where the client stands
	style   *quotav1.Response
}

// rateLimitedHeader tells meshes that the answer is a quota's, so that they do not retry it.
const rateLimitedHeader = "X-Envoy-Ratelimited"

// unknownRetry is asked for where nobody can know when a token will be there, as without a share.
const unknownRetry = time.Second

// hopeless reports whether the same request would be denied for ever.
func (d *denial) hopeless() bool { return d.refusal != 0 }

// retryDelay is how long to wait, never below what HTTP can say at least.
func (d *denial) retryDelay() time.Duration {
	if d.wait <= 0 || d.wait == limiter.Never {
		return unknownRetry
	}
	return d.wait
}

// retrySeconds rounds up: a client that comes back at the second named must find the token there.
func (d *denial) retrySeconds() int64 { return wholeSeconds(d.retryDelay()) }

// wholeSeconds rounds a duration up.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
