// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package door_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	rlsv3 "github.com/headgate/headgate/api/rls/v3"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/door"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const start = limiter.Time(1_000_000_000_000)

func limit(name string, requests, burst uint64, change ...func(*quotav1.Limit)) *quotav1.Limit {
	l := &quotav1.Limit{Id: name, Name: name, Scope: quotav1.Scope_TOTAL, Strategy: quotav1.Strategy_EQUAL_SHARE, Burst: burst,
		Rate: &quotav1.Rate{Requests: requests, PeriodNanoseconds: uint64(time.Second)}}
	for _, c := range change {
		c(l)
	}
	return l
}

func byHeader(name string) func(*quotav1.Limit) {
	return func(l *quotav1.Limit) {
		l.Key = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_Header{Header: name}}}
	}
}

func engine(t interface{ Fatal(...any) }, nth uint64, limits ...*quotav1.Limit) *admission.Engine {
	e := admission.New(admission.Options{Keys: 256})
	apply(t, e, nth, limits...)
	return e
}

func apply(t interface{ Fatal(...any) }, e *admission.Engine, nth uint64, limits ...*quotav1.Limit) {
	var shares []*quotav1.Share
	for _, l := range limits {
		shares = append(shares, &quotav1.Share{LimitId: l.Id, Units: quotav1.Whole / nth, FillUnits: quotav1.Whole / nth})
	}
	s := &quotav1.Snapshot{Version: "1", Policies: []*quotav1.Policy{{Uid: "u", Namespace: "shop", Name: "p", Limits: limits}}}
	if err := e.Apply(s, shares, start); err != nil {
		t.Fatal(err)
	}
}

// served is the door as a client finds it: on a port, over HTTP/2 without TLS.
func served(t *testing.T, e *admission.Engine) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := admin.Server(door.Handler(&door.RateLimit{Engine: e, Clock: func() limiter.Time { return start }}, http.NotFoundHandler()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return conn
}

func ask(t *testing.T, conn *grpc.ClientConn, in *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := &rlsv3.RateLimitResponse{}
	err := conn.Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", in, out)
	return out, err
}

func descriptor(kv ...string) *rlsv3.Descriptor {
	d := &rlsv3.Descriptor{}
	for i := 0; i < len(kv); i += 2 {
		d.Entries = append(d.Entries, &rlsv3.Descriptor_Entry{Key: kv[i], Value: kv[i+1]})
	}
	return d
}

func call(hits uint32, descriptors ...*rlsv3.Descriptor) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: "any", HitsAddend: hits, Descriptors: descriptors}
}

func TestEnvoyIsAnsweredByTheLimitsThatTheDescriptorsNameARequestOf(t *testing.T) {
	perKey := limit("per-key", 3, 3, byHeader("x-api-key"), func(l *quotav1.Limit) {
		l.Matches = []*quotav1.Match{{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: "/v1"}, Methods: []string{"POST"}}}
	})
	perClient := limit("per-client", 2, 2, func(l *quotav1.Limit) {
		l.Key = []*quotav1.KeyPart{{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{Ipv4Prefix: 24}}}}
		l.Matches = []*quotav1.Match{{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_EXACT, Value: "/login"}}}
	})
	conn := served(t, engine(t, 1, perKey, perClient))
	api := descriptor(":path", "/v1/x?q=1", ":method", "POST", "x-api-key", "a")
	for i, want := range []rlsv3.RateLimitResponse_Code{rlsv3.RateLimitResponse_OK, rlsv3.RateLimitResponse_OVER_LIMIT} {
		out, err := ask(t, conn, call(2, api))
		if err != nil || out.OverallCode != want || len(out.Statuses) != 1 || out.Statuses[0].Code != want {
			t.Fatalf("call %d: %v, %v", i, out, err)
		}
		if want == rlsv3.RateLimitResponse_OVER_LIMIT {
			if out.Statuses[0].CurrentLimit.GetName() != "p/per-key" || out.Statuses[0].CurrentLimit.GetUnit() != rlsv3.Unit_SECOND ||
				out.Statuses[0].LimitRemaining != 1 || !strings.Contains(string(out.RawBody), "quota-exceeded") {
				t.Errorf("told %v", out)
			}
			headers := map[string]string{}
			for _, h := range out.ResponseHeadersToAdd {
				headers[h.Key] = h.Value
			}
			if headers["retry-after"] != "1" || headers["x-envoy-ratelimited"] != "true" {
				t.Errorf("headers %v", headers)
			}
		}
	}
	if out, err := ask(t, conn, call(1, descriptor(":path", "/v1/x", ":method", "POST", "X-API-Key", "b"))); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("another key: %v, %v", out, err)
	}
	own := descriptor("remote_address", "10.1.2.3", "path", "/login")
	own.HitsAddend = wrapperspb.UInt64(2)
	if out, err := ask(t, conn, call(9, own)); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("a descriptor's own hits: %v, %v", out, err)
	}
	if out, err := ask(t, conn, call(0, descriptor("masked_remote_address", "10.1.2.0/24", "path", "/login"))); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("the same client once more: %v, %v", out, err)
	}
	if out, err := ask(t, conn, call(0, descriptor(":path", "/elsewhere"))); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("what no limit counts: %v, %v", out, err)
	}
}

func TestADescriptorMayBringNumbersOfItsOwnOfWhichThePodHasItsPart(t *testing.T) {
	e := engine(t, 2, limit("per-key", 100, 100, byHeader("x-api-key")))
	conn := served(t, e)
	own := descriptor("x-api-key", "a")
	own.Limit = &rlsv3.Descriptor_Override{RequestsPerUnit: 6, Unit: rlsv3.Unit_HOUR}
	admitted := 0
	for range 6 {
		out, err := ask(t, conn, call(1, own))
		if err != nil {
			t.Fatal(err)
		}
		if out.OverallCode == rlsv3.RateLimitResponse_OK {
			admitted++
		} else if l := out.Statuses[0].CurrentLimit; l.GetRequestsPerUnit() != 6 || l.GetUnit() != rlsv3.Unit_HOUR {
			t.Errorf("judged by %v", l)
		}
	}
	if admitted != 3 {
		t.Errorf("%d admitted, want half of the 6: there are two pods", admitted)
	}
	// One pod more: its part shrinks, and nothing is minted.
	apply(t, e, 3, limit("per-key", 100, 100, byHeader("x-api-key")))
	if out, err := ask(t, conn, call(1, own)); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("after an edit: %v, %v", out, err)
	}
}

func TestACallThatSaysNothingUsefulIsRefusedAndTakesNothing(t *testing.T) {
	e := engine(t, 1, limit("all", 1, 1))
	conn := served(t, e)
	override := func(n uint32, unit rlsv3.Unit) *rlsv3.Descriptor {
		d := descriptor("a", "b")
		d.Limit = &rlsv3.Descriptor_Override{RequestsPerUnit: n, Unit: unit}
		return d
	}
	many := make([]*rlsv3.Descriptor, 65)
	for i := range many {
		many[i] = descriptor("a", "b")
	}
	for name, in := range map[string]*rlsv3.RateLimitRequest{
		"no descriptor":                call(1),
		"too many descriptors":         call(1, many...),
		"a descriptor without entries": call(1, &rlsv3.Descriptor{}),
		"an entry without a key":       call(1, descriptor("", "x")),
		"an address that is none":      call(1, descriptor("remote_address", "somewhere")),
		"numbers without a unit":       call(1, override(5, rlsv3.Unit_UNKNOWN)),
		"a unit that nobody knows":     call(1, override(5, 99)),
		"numbers that admit nothing":   call(1, override(0, rlsv3.Unit_SECOND)),
	} {
		if _, err := ask(t, conn, in); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want it refused as invalid", name, err)
		}
	}
	if out, err := ask(t, conn, call(1, descriptor("a", "b"))); err != nil || out.OverallCode != rlsv3.RateLimitResponse_OK {
		t.Errorf("the limit's one token is gone: %v, %v", out, err)
	}
}

func TestWithoutASnapshotEnvoyIsToldThatNobodyCanSay(t *testing.T) {
	conn := served(t, admission.New(admission.Options{}))
	if _, err := ask(t, conn, call(1, descriptor("a", "b"))); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v: Envoy's failure mode must decide, not a denial", err)
	}
}

func FuzzShouldRateLimit(f *testing.F) {
	seed, err := proto.Marshal(call(2, descriptor(":path", "/a?b", "remote_address", "::1", "x", "y")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	e := engine(f, 1, limit("all", 10, 10), limit("each", 10, 10, byHeader("x")))
	s := &door.RateLimit{Engine: e, Clock: func() limiter.Time { return start }}
	f.Fuzz(func(t *testing.T, message []byte) {
		in := &rlsv3.RateLimitRequest{}
		if proto.Unmarshal(message, in) != nil {
			return
		}
		out, err := s.ShouldRateLimit(t.Context(), in)
		if err == nil && len(out.Statuses) != len(in.Descriptors) {
			t.Errorf("%d answers to %d descriptors", len(out.Statuses), len(in.Descriptors))
		}
	})
}
