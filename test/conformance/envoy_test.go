// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/door"
)

// The door speaks Envoy's protocol by messages of its own: Envoy's own client must read it as what it is.
func TestEnvoysOwnClientReadsTheRateLimitService(t *testing.T) {
	limit := &quotav1.Limit{Id: "l", Name: "per-key", Rate: &quotav1.Rate{Requests: 5, PeriodNanoseconds: uint64(time.Minute)}, Burst: 5,
		Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_EQUAL_SHARE,
		Key: []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Header{Header: "x-api-key"}}}}
	engine := admission.New(admission.Options{})
	if err := engine.Apply(&quotav1.Snapshot{Version: "1", Response: &quotav1.Response{Headers: quotav1.HeaderFamily_IETF_DRAFT_10},
		Policies: []*quotav1.Policy{{Uid: "u", Namespace: "shop", Name: "p", Limits: []*quotav1.Limit{limit}}}},
		[]*quotav1.Share{{LimitId: "l", Units: quotav1.Whole, FillUnits: quotav1.Whole}}, limiter.Now()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := admin.Server(door.Handler(&door.RateLimit{Engine: engine, Clock: limiter.Now}, http.NotFoundHandler()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = conn.Close()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := rlsv3.NewRateLimitServiceClient(conn)
	descriptor := func(key string) *ratelimitv3.RateLimitDescriptor {
		return &ratelimitv3.RateLimitDescriptor{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "x-api-key", Value: key}}}
	}
	decide := func(hits uint32, d *ratelimitv3.RateLimitDescriptor) *rlsv3.RateLimitResponse {
		out, err := client.ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{Domain: "shop", HitsAddend: hits, Descriptors: []*ratelimitv3.RateLimitDescriptor{d}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := decide(4, descriptor("a"))
	s := out.GetStatuses()[0]
	if out.OverallCode != rlsv3.RateLimitResponse_OK || s.GetCode() != rlsv3.RateLimitResponse_OK || s.GetLimitRemaining() != 1 ||
		s.GetCurrentLimit().GetRequestsPerUnit() != 5 || s.GetCurrentLimit().GetUnit() != rlsv3.RateLimitResponse_RateLimit_MINUTE ||
		s.GetCurrentLimit().GetName() != "p/per-key" || s.GetDurationUntilReset().AsDuration() <= 40*time.Second {
		t.Errorf("admitted: %v", out)
	}
	if h := out.GetResponseHeadersToAdd(); len(h) != 2 || h[0].GetKey() != "ratelimit-policy" || h[0].GetValue() != `"p/per-key";q=5;w=60` {
		t.Errorf("headers %v", h)
	}
	if out := decide(4, descriptor("a")); out.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT || len(out.RawBody) == 0 {
		t.Errorf("denied: %v", out)
	}
	own := descriptor("b")
	own.HitsAddend = wrapperspb.UInt64(3)
	own.Limit = &ratelimitv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: typev3.RateLimitUnit_HOUR}
	if out := decide(1, own); out.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("own numbers: %v", out)
	}
	if out := decide(1, own); out.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT || out.GetStatuses()[0].GetCurrentLimit().GetUnit() != rlsv3.RateLimitResponse_RateLimit_HOUR {
		t.Errorf("beyond own numbers: %v", out)
	}
}
