// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// limit is n per second with a burst, for the requests that any of the matches hold for.
func limit(name string, n, burst uint64, matches ...*quotav1.Match) *quotav1.Limit {
	return &quotav1.Limit{
		Id:       "uid/" + name,
		Name:     name,
		Matches:  matches,
		Rate:     &quotav1.Rate{Requests: n, PeriodNanoseconds: uint64(time.Second)},
		Burst:    burst,
		Scope:    quotav1.Scope_TOTAL,
		Strategy: quotav1.Strategy_EQUAL_SHARE,
	}
}

func keyed(l *quotav1.Limit, parts ...*quotav1.KeyPart) *quotav1.Limit {
	l.Key = parts
	return l
}

func byHeader(name string) *quotav1.KeyPart {
	return &quotav1.KeyPart{Part: &quotav1.KeyPart_Header{Header: name}}
}

func byClient(v4, v6 uint32) *quotav1.KeyPart {
	return &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{Ipv4Prefix: v4, Ipv6Prefix: v6}}}
}

func snapshot(version string, limits ...*quotav1.Limit) *quotav1.Snapshot {
	return &quotav1.Snapshot{Version: version, Policies: []*quotav1.Policy{
		{Uid: "uid", Namespace: "shop", Name: "checkout", Generation: 1, Limits: limits},
	}}
}

// part is units of a limit, of which the share starts with fill (both as n-ths of the whole; 0 is none).
func part(name string, nth, fillNth uint64) *quotav1.Share {
	s := &quotav1.Share{LimitId: "uid/" + name}
	if nth > 0 {
		s.Units = quotav1.Whole / nth
	}
	if fillNth > 0 {
		s.FillUnits = quotav1.Whole / fillNth
	}
	return s
}

// start is the instant at which the tests begin.
const start = limiter.Time(1_000_000_000_000)

func at(d time.Duration) limiter.Time { return start.Add(d) }

func request(path string, kv ...string) *Request {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return &Request{Method: "GET", Path: path, Host: "shop", Header: h, Peer: netip.MustParseAddr("192.0.2.1")}
}

func apply(t testing.TB, e *Engine, now limiter.Time, s *quotav1.Snapshot, shares ...*quotav1.Share) {
	t.Helper()
	if err := e.Apply(s, shares, now); err != nil {
		t.Fatal(err)
	}
}

// admitted is how many of n requests at an instant are allowed.
func admitted(e *Engine, now limiter.Time, n int, r *Request) int {
	count := 0
	for range n {
		if d := e.Decide(r, now); d.Allowed {
			count++
		}
	}
	return count
}
