// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// denials remembers the answers to denied requests: a flood gets the same one over and over, and making it costs as much as
// all else.
type denials map[denial]respond.Answer

// denial is all that an answer depends on, where it may be remembered.
type denial struct {
	limit   *admission.Limit
	seconds int64 // until asking again makes sense, 0 when nobody knows
	refusal admission.Refusal
	style   *quotav1.Response
	toHead  bool
}

// mostDenials bounds what is remembered: as many seconds as limits count down at the same time.
const mostDenials = 512

// answer is respond.To.
func (m denials) answer(method string, header admission.Header, d *admission.Decision) respond.Answer {
	asker := respond.Asker{Method: method}
	if types := header.Values("Content-Type"); len(types) > 0 {
		asker.ContentType = types[0]
	}
	// gRPC's answers tell milliseconds, and fields of where the client stands move by themselves.
	if len(d.Denied) != 1 || asker.ContentType != "" || d.Response.GetHeaders() != quotav1.HeaderFamily_HEADER_FAMILY_UNSPECIFIED {
		return respond.To(asker, d)
	}
	key := denial{limit: d.Denied[0], refusal: d.Refusal, style: d.Response, toHead: method == http.MethodHead}
	if d.RetryAfter > 0 && d.RetryAfter != limiter.Never {
		key.seconds = int64((d.RetryAfter-1)/time.Second) + 1
	}
	a, ok := m[key]
	if !ok {
		if len(m) == mostDenials {
			clear(m)
		}
		a = respond.To(asker, d)
		m[key] = a
	}
	return a
}
