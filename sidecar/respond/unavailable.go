// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/sidecar/admission"
)

// unavailable is what people read when there is nothing to decide by.
const unavailable = "headgate: this pod is not ready to decide requests"

// Unavailable is the answer to a request that could not be decided: 503, or gRPC's UNAVAILABLE. It is not a denial, and
// asking another pod makes sense.
func Unavailable(to Asker) Answer {
	if admission.IsGRPC(to.ContentType) {
		return Answer{Status: http.StatusOK, TrailersOnly: true, Fields: []Field{
			{"Content-Type", "application/grpc"},
			{"Grpc-Status", strconv.Itoa(int(codes.Unavailable))},
			{"Grpc-Message", percentEncode(unavailable)},
			{"Content-Length", "0"},
		}}
	}
	a := Answer{Status: http.StatusServiceUnavailable, Fields: []Field{
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Retry-After", "1"},
		{"Cache-Control", "no-store"},
	}}
	a.body(to, []byte(unavailable+"\n"))
	return a
}
