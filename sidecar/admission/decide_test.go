// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

func TestAllMatchingLimitsMustGrantOrNoneIsSpent(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("wide", 1, 10), limit("narrow", 1, 2, prefix("/v1")), limit("other", 1, 5, prefix("/other"))),
		part("wide", 1, 1), part("narrow", 1, 1), part("other", 1, 1))
	if got := admitted(e, start, 5, request("/v1/x")); got != 2 {
		t.Fatalf("admitted %d, want the narrow limit's 2", got)
	}
	if got := admitted(e, start, 50, request("/x")); got != 8 {
		t.Errorf("admitted %d afterwards, want the 8 that the denied requests left in the wide limit", got)
	}
	s := e.State(start).Policies[0].Limits
	if s[0].Allowed != 10 || s[0].Denied != 42 || s[1].Allowed != 2 || s[1].Denied != 3 || s[2].Allowed+s[2].Denied != 0 {
		t.Errorf("counters: %+v", s)
	}
}

func TestADenialNamesEveryLimitThatDeniedAndTheLongestWait(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("fast", 10, 1), limit("slow", 1, 1), limit("free", 100, 100)),
		part("fast", 1, 1), part("slow", 1, 1), part("free", 1, 1))
	e.Decide(request("/"), start)
	d := e.Decide(request("/"), start)
	if d.Allowed || !slices.Equal(d.Names(), []string{"checkout/fast", "checkout/slow"}) {
		t.Errorf("denied by %v", d.Names())
	}
	if d.RetryAfter != time.Second {
		t.Errorf("retry after %v, want the slow limit's second", d.RetryAfter)
	}
	if d = e.Decide(request("/"), start.Add(d.RetryAfter)); !d.Allowed {
		t.Error("denied at the instant that the denial named")
	}
}

func TestTheTightestLimitIsTold(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("wide", 10, 100), limit("narrow", 2, 10)), part("wide", 1, 1), part("narrow", 2, 1))
	d := e.Decide(request("/"), start)
	if d.Tightest.ID() != "uid/narrow" || d.Limit != 5*limiter.Token || d.Remaining != 4*limiter.Token || d.Reset() != time.Second {
		t.Errorf("got %s, %v of %v, full in %v; want this pod's half of narrow", d.Tightest.Name(), d.Remaining, d.Limit, d.Reset())
	}
	apply(t, e, start, snapshot("v2"))
	if d = e.Decide(request("/"), start); d.Tightest != nil || d.Reset() != 0 {
		t.Errorf("without limits: %+v", d)
	}
}

func TestAShareBelowOneTokenNeverPromisesATime(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("all", 1, 1)), part("all", 2, 0))
	if d := e.Decide(request("/"), at(time.Hour)); d.Allowed || d.RetryAfter != limiter.Never {
		t.Errorf("got %+v", d)
	}
}

func TestMoreLimitsThanAFewAreDecidedTogether(t *testing.T) {
	e := New(Options{})
	s := snapshot("v1")
	for i := range 3 * few {
		name := fmt.Sprint("l", i)
		s.Policies[0].Limits = append(s.Policies[0].Limits, limit(name, 1, 5))
	}
	apply(t, e, start, s)
	if d := e.Decide(request("/"), start); d.Allowed || len(d.Denied) != 3*few || len(d.Names()) != 3*few {
		t.Errorf("denied by %v, want all", d.Names())
	}
	if alone := e.table.Load().limits[0].alone; len(alone) != 1 || cap(alone) != 1 {
		t.Errorf("a shared slice has grown: %v", alone)
	}
}

func TestKeys(t *testing.T) {
	type step struct {
		set  func(*Request)
		want bool
	}
	headers := func(kv ...string) func(*Request) {
		return func(r *Request) { r.Header = request("/", kv...).Header }
	}
	peer := func(s string) func(*Request) {
		return func(r *Request) { r.Peer = netip.MustParseAddr(s) }
	}
	a, b := byHeader("x-a"), byHeader("x-b")
	for name, tc := range map[string]struct {
		key   []*quotav1.KeyPart
		steps []step
	}{
		"keys have buckets of their own": {[]*quotav1.KeyPart{a}, []step{
			{headers("X-A", "1"), true}, {headers("X-A", "2"), true}, {headers("X-A", "1"), false}}},
		"a request without the header is not matched": {[]*quotav1.KeyPart{a}, []step{
			{headers(), true}, {headers(), true}, {headers("X-B", "1"), true}}},
		"an empty header is a key": {[]*quotav1.KeyPart{a}, []step{
			{headers("X-A", ""), true}, {headers("X-A", ""), false}}},
		"the first of several lines is the key": {[]*quotav1.KeyPart{a}, []step{
			{headers("X-A", "1", "X-A", "2"), true}, {headers("X-A", "1", "X-A", "3"), false}}},
		"a tuple is not its concatenation": {[]*quotav1.KeyPart{a, b}, []step{
			{headers("X-A", "12", "X-B", "3"), true}, {headers("X-A", "1", "X-B", "23"), true}, {headers("X-A", "12", "X-B", "3"), false}}},
		"a tuple without a part is not matched": {[]*quotav1.KeyPart{a, b}, []step{
			{headers("X-A", "1"), true}, {headers("X-A", "1"), true}}},
		"Host can be a key": {[]*quotav1.KeyPart{byHeader("host")}, []step{
			{headers(), true}, {headers(), false}}},
		"an IPv4 client is its address": {[]*quotav1.KeyPart{byClient(0, 0)}, []step{
			{peer("192.0.2.1"), true}, {peer("192.0.2.2"), true}, {peer("192.0.2.1"), false}}},
		"an IPv4 client is the same in IPv6 clothes": {[]*quotav1.KeyPart{byClient(0, 0)}, []step{
			{peer("192.0.2.1"), true}, {peer("::ffff:192.0.2.1"), false}}},
		"an IPv6 client is its /64": {[]*quotav1.KeyPart{byClient(0, 0)}, []step{
			{peer("2001:db8::1"), true}, {peer("2001:db8::ffff:2"), false}, {peer("2001:db8:0:1::1"), true}}},
		"a zone does not make another client": {[]*quotav1.KeyPart{byClient(0, 0)}, []step{
			{peer("fe80::1%eth0"), true}, {peer("fe80::1%eth1"), false}}},
		"prefixes can be chosen": {[]*quotav1.KeyPart{byClient(24, 48)}, []step{
			{peer("192.0.2.1"), true}, {peer("192.0.2.255"), false}, {peer("2001:db8:0:1::"), true}, {peer("2001:db8:0:2::"), false}}},
		"an unknown client is not matched": {[]*quotav1.KeyPart{byClient(0, 0)}, []step{
			{func(r *Request) { r.Peer = netip.Addr{} }, true}, {func(r *Request) { r.Peer = netip.Addr{} }, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := keyed(limit("each", 1, 1), tc.key...)
			e := New(Options{Keys: 64})
			apply(t, e, start, snapshot("v1", l), part("each", 1, 1))
			for i, s := range tc.steps {
				r := request("/")
				s.set(r)
				if d := e.Decide(r, start); d.Allowed != s.want {
					t.Errorf("request %d: allowed = %v, want %v", i, d.Allowed, s.want)
				}
			}
		})
	}
}

func TestRecordsNameTheSameKeyAlikeInEveryProcess(t *testing.T) {
	a := []keyPart{{header: "X-A"}, {header: "X-B"}}
	one, two := stable(a, "X-A", "12", "X-B", "3"), stable(a, "X-A", "1", "X-B", "23")
	if one == two || one == (KeyHash{}) {
		t.Errorf("hashes %x and %x", one, two)
	}
	const golden = "697da6d540b58800718e9bc6f151d320"
	if got := fmt.Sprintf("%x", stable(a[:1], "X-A", "gold-7f3")); got != golden {
		t.Errorf("hash %s, want %s: records of older and newer processes must be comparable", got, golden)
	}
}

func stable(parts []keyPart, kv ...string) KeyHash {
	r := read(request("/", kv...))
	return stableHash(parts, &r)
}
