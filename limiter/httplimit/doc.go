// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httplimit decides on HTTP requests before their handler sees them.
//
// A denied request is answered 429 with Retry-After and a problem document (RFC 9457); every answer carries RateLimit
// and RateLimit-Policy as in draft-ietf-httpapi-ratelimit-headers-11.
package httplimit
