//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func grpcCallIsDenied(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 2, 5))
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)
	address, err := suite.Address(s.ctx, app)
	s.must(err, "service")
	conn, err := grpc.NewClient(strings.TrimPrefix(address, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err, "client")
	defer func() { _ = conn.Close() }()
	client := healthv1.NewHealthClient(conn)
	admitted, denied := 0, 0
	for range 30 {
		_, err := client.Check(s.ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
		switch status.Code(err) {
		case codes.OK:
			admitted++
		case codes.ResourceExhausted:
			denied++
			s.explained(err)
		default:
			s.Fatalf("call: %v", err)
		}
	}
	if admitted < 5 || denied == 0 {
		s.Errorf("%d admitted, %d denied of 30 calls at once: the burst is 5", admitted, denied)
	}
	s.judge()
}

// explained wants a denial to say when to come back.
func (s *space) explained(err error) {
	s.Helper()
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			if d := retry.RetryDelay.AsDuration(); d <= 0 || d > time.Second {
				s.Errorf("RetryInfo says %s, a token comes every 500 ms", d)
			}
			return
		}
	}
	s.Errorf("the denial has no RetryInfo: %v", err)
}
