// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// startGRPC runs the health service as the application, behind a limit.
func startGRPC(t *testing.T, limits ...*quotav1.Limit) (*pod, *health.Server, healthv1.HealthClient) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, service := grpc.NewServer(), health.NewServer()
	healthv1.RegisterHealthServer(server, service)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	p := startPodAt(t, l, podOptions{limits: limits, fill: true})
	conn, err := grpc.NewClient("127.0.0.1:"+strconv.Itoa(p.port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return p, service, healthv1.NewHealthClient(conn)
}

func TestGRPCCallsPassAndDeniedOnesAreResourceExhausted(t *testing.T) {
	watch := perHour("watch", 1, 100)
	_, service, c := startGRPC(t, perHour("all", 1, 3), watch)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r, err := c.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("unary call: %v, %v", r, err)
	}
	if _, err := c.Check(ctx, &healthv1.HealthCheckRequest{Service: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("the application's own status arrives as %v", err)
	}
	stream, err := c.Watch(ctx, &healthv1.HealthCheckRequest{Service: "cart"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthv1.HealthCheckResponse_ServingStatus{
		healthv1.HealthCheckResponse_SERVICE_UNKNOWN, healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING,
	} {
		if want != healthv1.HealthCheckResponse_SERVICE_UNKNOWN {
			service.SetServingStatus("cart", want)
		}
		if r, err := stream.Recv(); err != nil || r.GetStatus() != want {
			t.Fatalf("stream: %v, %v, want %v", r, err, want)
		}
	}
	_, err = c.Check(ctx, &healthv1.HealthCheckRequest{})
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted {
		t.Fatalf("the fourth call: %v", err)
	}
	var retry *errdetails.RetryInfo
	var failure *errdetails.QuotaFailure
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			failure = d
		}
	}
	if retry.GetRetryDelay().AsDuration() <= 0 {
		t.Errorf("no RetryInfo in %v", s.Details())
	}
	if fmt.Sprint(failure.GetViolations()[0].GetSubject()) != "checkout/all" {
		t.Errorf("QuotaFailure: %v", failure)
	}
	// The stream that was admitted goes on.
	service.SetServingStatus("cart", healthv1.HealthCheckResponse_SERVING)
	if r, err := stream.Recv(); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("stream: %v, %v", r, err)
	}
}

func TestGRPCClientsLeaveADrainingPodWithoutAFailure(t *testing.T) {
	p, _, c := startGRPC(t, perSecond("all", 1_000_000, 1_000_000))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 200 {
		if i == 50 {
			p.drain()
		}
		if _, err := c.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}
