// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"net/http"
	"strings"

	"google.golang.org/grpc"
)

// maxMessage bounds a call; Envoy's are some hundred bytes.
const maxMessage = 256 << 10

// Handler answers calls of gRPC, over HTTP/2 without TLS, by the doors, and leaves the rest to another handler.
func Handler(s *RateLimit, next http.Handler) http.Handler {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	s.Register(server)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			server.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
