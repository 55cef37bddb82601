// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// denyGRPC answers trailers-only: one block of headers that ends the stream, with HTTP status 200.
func denyGRPC(d denial) Answer {
	a := Answer{Status: http.StatusOK, TrailersOnly: true, Fields: []Field{
		{"Content-Type", "application/grpc"},
		{"Grpc-Status", strconv.Itoa(int(codes.ResourceExhausted))},
		{"Grpc-Message", percentEncode(d.detail())},
		// gRFC A6: a client with a retry policy waits this long, or does not retry what will never be granted.
		{"Grpc-Retry-Pushback-Ms", d.pushback()},
		{rateLimitedHeader, "true"},
	}}
	if details := d.grpcDetails(); details != "" {
		a.Fields = append(a.Fields, Field{"Grpc-Status-Details-Bin", details})
	}
	a.Fields = append(a.Fields, d.fields...)
	a.Fields = append(a.Fields, Field{"Content-Length", "0"})
	return a
}

func (d *denial) pushback() string {
	if d.hopeless() {
		return "-1"
	}
	return strconv.FormatInt(milliseconds(d.retryDelay()), 10)
}

func (d *denial) grpcDetails() string {
	failure := &errdetails.QuotaFailure{}
	for _, limit := range d.limits {
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     limit,
			Description: "rate limit exceeded",
		})
	}
	details := []proto.Message{failure}
	if !d.hopeless() {
		details = []proto.Message{&errdetails.RetryInfo{RetryDelay: durationpb.New(d.retryDelay())}, failure}
	}
	status := &rpcstatus.Status{Code: int32(codes.ResourceExhausted), Message: d.detail()}
	for _, message := range details {
		packed, err := anypb.New(message)
		if err != nil {
			return ""
		}
		status.Details = append(status.Details, packed)
	}
	// Deterministic: equal denials have equal bytes.
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(status)
	if err != nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// percentEncode writes a message as gRPC wants it: bytes outside of printable ASCII, and the percent sign, are encoded.
func percentEncode(message string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(message))
	for i := 0; i < len(message); i++ {
		c := message[i]
		if c < ' ' || c > '~' || c == '%' {
			out = append(out, '%', digits[c>>4], digits[c&15])
			continue
		}
		out = append(out, c)
	}
	return string(out)
}
