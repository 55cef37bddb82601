// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"strconv"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

// Standing returns the header fields that tell a client where it stands, on allowed and denied answers alike: of the limit that
// denied, else of the tightest one. nil where the policies ask for none, or no limit counted the request.
func Standing(d *admission.Decision) []Field {
	family := d.Response.GetHeaders()
	if family == quotav1.HeaderFamily_HEADER_FAMILY_UNSPECIFIED {
		return nil
	}
	s, ok := d.Standing()
	if !ok {
		return nil
	}
	if family == quotav1.HeaderFamily_X_RATE_LIMIT {
		return xRateLimit(s)
	}
	return draft10(s)
}

// draft10 writes the fields of draft-ietf-httpapi-ratelimit-headers-10: lists of structured fields (RFC 9651) of one item.
func draft10(s admission.Standing) []Field {
	name := strconv.Quote(s.Limit) // policy and limit are names of Kubernetes: nothing in them needs an escape
	policy := name + ";q=" + strconv.FormatUint(s.Quota, 10)
	if s.Concurrent {
		policy += `;qu="concurrent-requests"`
	}
	if s.Window >= time.Second && s.Window%time.Second == 0 {
		policy += ";w=" + strconv.FormatInt(int64(s.Window/time.Second), 10)
	}
	standing := name + ";r=" + strconv.FormatUint(s.Remaining, 10)
	if s.Wait != limiter.Never {
		standing += ";t=" + strconv.FormatInt(wholeSeconds(s.Wait), 10)
	}
	return []Field{{"Ratelimit-Policy", policy}, {"Ratelimit", standing}}
}

// xRateLimit writes the fields that most APIs send: no standard says what they mean. Reset is in seconds from now, one at
// least.
func xRateLimit(s admission.Standing) []Field {
	fields := []Field{
		{"X-Ratelimit-Limit", strconv.FormatUint(s.Quota, 10)},
		{"X-Ratelimit-Remaining", strconv.FormatUint(min(s.Remaining, s.Quota), 10)},
	}
	if s.Wait != limiter.Never {
		fields = append(fields, Field{"X-Ratelimit-Reset", strconv.FormatInt(max(1, wholeSeconds(s.Wait)), 10)})
	}
	return fields
}
