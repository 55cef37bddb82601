// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	rlsv3 "github.com/headgate/headgate/api/rls/v3"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// Engine decides what the doors are asked.
type Engine interface {
	DecideWait(ctx context.Context, now limiter.Time, requests ...*admission.Request) (d admission.Decision, ok bool)
}

// RateLimit is Envoy's rate limit service, version 3 (envoy.service.ratelimit.v3.RateLimitService).
//
// Each descriptor describes the request: an entry :method, :path, :authority or remote_address is that part of it, and any other
// entry is a header of its name. What the limits take for all descriptors is taken, or nothing is. The domain is not looked at:
// the policies are those of the pod.
type RateLimit struct {
	Engine Engine
	Clock  func() limiter.Time
}

// maxDescriptors bounds how much work one call may ask for.
const (
	maxDescriptors = 64
	maxEntries     = 64
)

// Register adds the service to a gRPC server.
func (s *RateLimit) Register(server *grpc.Server) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			in := &rlsv3.RateLimitRequest{}
			if err := decode(in); err != nil {
				return nil, err
			}
			answer := func(ctx context.Context, in any) (any, error) {
				return srv.(*RateLimit).ShouldRateLimit(ctx, in.(*rlsv3.RateLimitRequest))
			}
			if intercept == nil {
				return answer(ctx, in)
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"}, answer)
		}}},
	}, s)
}

// ShouldRateLimit decides a request by its descriptors.
func (s *RateLimit) ShouldRateLimit(ctx context.Context, in *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	if n := len(in.GetDescriptors()); n == 0 || n > maxDescriptors {
		return nil, status.Errorf(codes.InvalidArgument, "%d descriptors: send 1 to %d", n, maxDescriptors)
	}
	requests := make([]*admission.Request, 0, len(in.GetDescriptors()))
	for _, d := range in.GetDescriptors() {
		r, err := describe(d, uint64(in.GetHitsAddend()))
		if err != nil {
			return nil, err
		}
		requests = append(requests, r)
	}
	d, ok := s.Engine.DecideWait(ctx, s.Clock(), requests...)
	if !ok {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	d.Ticket.End() // nobody tells a door when a request is over
	switch {
	case d.Unavailable:
		return nil, status.Error(codes.Unavailable, "this pod has nothing to decide by yet")
	case d.Err != nil:
		return nil, status.Error(codes.InvalidArgument, d.Err.Error())
	}
	return answer(&d, len(requests)), nil
}

// describe reads a descriptor as a request.
func describe(d *rlsv3.Descriptor, hits uint64) (*admission.Request, error) {
	if n := len(d.GetEntries()); n == 0 || n > maxEntries {
		return nil, status.Errorf(codes.InvalidArgument, "a descriptor of %d entries: send 1 to %d", n, maxEntries)
	}
	if d.GetHitsAddend() != nil {
		hits = d.GetHitsAddend().GetValue()
	}
	header := http.Header{}
	out := &admission.Request{Method: http.MethodGet, Path: "/", Header: header, Hits: hits}
	for _, e := range d.GetEntries() {
		switch key, value := strings.ToLower(e.GetKey()), e.GetValue(); key {
		case ":method", "method":
			out.Method = value
		case ":path", "path":
			out.Path, out.Query, _ = strings.Cut(value, "?")
		case ":authority", "host":
			out.Host = value
		case "remote_address", "masked_remote_address":
			address, err := netip.ParsePrefix(value)
			if err != nil {
				one, err := netip.ParseAddr(value)
				if err != nil {
					return nil, status.Errorf(codes.InvalidArgument, "entry %s: %q is no address, such as 10.1.2.3", e.GetKey(), value)
				}
				address = netip.PrefixFrom(one, one.BitLen())
			}
			out.Peer = address.Addr()
		case "":
			return nil, status.Error(codes.InvalidArgument, "an entry without a key")
		default:
			header.Add(key, value)
		}
	}
	if o := d.GetLimit(); o != nil {
		period := periods[o.GetUnit()]
		if period == 0 || o.GetRequestsPerUnit() == 0 {
			return nil, status.Errorf(codes.InvalidArgument, "limit of %d requests per %s: send for example 10 per SECOND", o.GetRequestsPerUnit(), o.GetUnit())
		}
		out.Instead = &admission.Numbers{Requests: uint64(o.GetRequestsPerUnit()), Period: period}
	}
	return out, nil
}

// periods are the units of Envoy; a month has 30 days and a year 365, as with Envoy's own service.
var periods = map[rlsv3.Unit]time.Duration{
	rlsv3.Unit_SECOND: time.Second, rlsv3.Unit_MINUTE: time.Minute, rlsv3.Unit_HOUR: time.Hour, rlsv3.Unit_DAY: 24 * time.Hour,
	rlsv3.Unit_MONTH: 30 * 24 * time.Hour, rlsv3.Unit_YEAR: 365 * 24 * time.Hour,
}

// answer tells the same of every descriptor: they are decided together.
func answer(d *admission.Decision, descriptors int) *rlsv3.RateLimitResponse {
	code := rlsv3.RateLimitResponse_OK
	if !d.Allowed {
		code = rlsv3.RateLimitResponse_OVER_LIMIT
	}
	one := &rlsv3.RateLimitResponse_DescriptorStatus{Code: code}
	if s, ok := d.Standing(); ok {
		one.LimitRemaining = uint32(min(s.Remaining, math.MaxUint32))
		if s.Wait != limiter.Never {
			one.DurationUntilReset = durationpb.New(s.Wait)
		}
		one.CurrentLimit = &rlsv3.RateLimitResponse_RateLimit{Name: s.Limit, RequestsPerUnit: uint32(min(s.Quota, math.MaxUint32))}
		for unit, period := range periods {
			if period == s.Window {
				one.CurrentLimit.Unit = unit
			}
		}
	}
	out := &rlsv3.RateLimitResponse{OverallCode: code}
	for range descriptors {
		out.Statuses = append(out.Statuses, one)
	}
	fields := respond.Standing(d)
	if !d.Allowed {
		// Envoy writes the denial itself: with these it says what a denial of the sidecar's own says.
		a := respond.To(respond.Asker{}, d)
		out.RawBody, fields = a.Body, a.Fields
	}
	for _, f := range fields {
		if f.Name != "Content-Length" {
			out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &rlsv3.RateLimitResponse_HeaderValue{Key: strings.ToLower(f.Name), Value: f.Value})
		}
	}
	return out
}
