// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"io"
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"
)

// unavailable is what people read when there is nothing to decide by.
const unavailable = "headgate: this pod is not ready to decide requests"

// Unavailable answers a request that could not be decided: 503, or gRPC's UNAVAILABLE. It is not a denial, and asking
// another pod makes sense.
func Unavailable(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if isGRPC(r.Header.Get("Content-Type")) {
		h.Set("Content-Type", "application/grpc")
		h.Set("Grpc-Status", strconv.Itoa(int(codes.Unavailable)))
		h.Set("Grpc-Message", percentEncode(unavailable))
		w.WriteHeader(http.StatusOK)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(unavailable)+1))
	h.Set("Retry-After", "1")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, unavailable+"\n")
	}
}
