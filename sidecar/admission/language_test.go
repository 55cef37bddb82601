// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

func token(claims string) string {
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none"}`)) + "." + enc.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestKeysAreReadFromEveryPartOfARequest(t *testing.T) {
	hops := func(n uint32) *quotav1.KeyPart {
		return &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{TrustedHops: n}}}
	}
	from := func(header string) *quotav1.KeyPart {
		return &quotav1.KeyPart{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{Header: header}}}
	}
	claimed := func(name string) *quotav1.KeyPart {
		return &quotav1.KeyPart{Part: &quotav1.KeyPart_JwtClaim{JwtClaim: &quotav1.JWTClaim{Header: "authorization", Claim: name}}}
	}
	cookieKey := &quotav1.KeyPart{Part: &quotav1.KeyPart_Cookie{Cookie: "session"}}
	queryKey := &quotav1.KeyPart{Part: &quotav1.KeyPart_Query{Query: "api_key"}}
	bearer := func(claims string) []string { return []string{"Authorization", "Bearer " + token(claims)} }
	for name, tc := range map[string]struct {
		part  *quotav1.KeyPart
		kv    []string
		query string
		want  string // of the text or the address; "-" when the key is missing
	}{
		"a cookie":                                     {part: cookieKey, kv: []string{"Cookie", "a=1; session=s7; b=2"}, want: "s7"},
		"a cookie in quotes":                           {part: cookieKey, kv: []string{"Cookie", `session="s7"`}, want: "s7"},
		"a cookie in a second line":                    {part: cookieKey, kv: []string{"Cookie", "a=1", "Cookie", "session=s7"}, want: "s7"},
		"a cookie that is missing":                     {part: cookieKey, kv: []string{"Cookie", "mysession=s7"}, want: "-"},
		"a query parameter":                            {part: queryKey, query: "x=1&api_key=k%2F7", want: "k/7"},
		"a query parameter that is missing":            {part: queryKey, query: "x=api_key", want: "-"},
		"the last hop":                                 {part: hops(1), kv: []string{"X-Forwarded-For", "203.0.113.9, 198.51.100.7"}, want: "198.51.100.7"},
		"the hop before it":                            {part: hops(2), kv: []string{"X-Forwarded-For", "203.0.113.9, 198.51.100.7"}, want: "203.0.113.9"},
		"hops over several lines":                      {part: hops(2), kv: []string{"X-Forwarded-For", "203.0.113.9", "X-Forwarded-For", "198.51.100.7"}, want: "203.0.113.9"},
		"a client that invents hops":                   {part: hops(1), kv: []string{"X-Forwarded-For", "1.1.1.1, 2.2.2.2, 198.51.100.7"}, want: "198.51.100.7"},
		"fewer hops than trusted":                      {part: hops(2), kv: []string{"X-Forwarded-For", "198.51.100.7"}, want: "192.0.2.1"},
		"no hops":                                      {part: hops(1), want: "192.0.2.1"},
		"a hop that is no address":                     {part: hops(1), kv: []string{"X-Forwarded-For", "unknown"}, want: "192.0.2.1"},
		"a hop with a port":                            {part: hops(1), kv: []string{"X-Forwarded-For", "198.51.100.7:4711"}, want: "198.51.100.7"},
		"an IPv6 hop in brackets is its /64":           {part: hops(1), kv: []string{"X-Forwarded-For", "[2001:db8::7]"}, want: "2001:db8::"},
		"an IPv6 hop with a port":                      {part: hops(1), kv: []string{"X-Forwarded-For", "[2001:db8::7]:443"}, want: "2001:db8::"},
		"a header of the edge":                         {part: from("cf-connecting-ip"), kv: []string{"Cf-Connecting-Ip", "198.51.100.7"}, want: "198.51.100.7"},
		"a header of the edge that is missing":         {part: from("cf-connecting-ip"), want: "192.0.2.1"},
		"a claim":                                      {part: claimed("sub"), kv: bearer(`{"sub":"alice"}`), want: "alice"},
		"a claim in an object":                         {part: claimed("org.id"), kv: bearer(`{"org":{"id":42}}`), want: "42"},
		"a claim that is a bool":                       {part: claimed("beta"), kv: bearer(`{"beta":true}`), want: "true"},
		"a claim that is a list":                       {part: claimed("sub"), kv: bearer(`{"sub":["a"]}`), want: "-"},
		"a claim that is null":                         {part: claimed("sub"), kv: bearer(`{"sub":null}`), want: "-"},
		"a claim that is missing":                      {part: claimed("sub"), kv: bearer(`{}`), want: "-"},
		"a token without a scheme":                     {part: claimed("sub"), kv: []string{"Authorization", token(`{"sub":"alice"}`)}, want: "alice"},
		"a token that is none":                         {part: claimed("sub"), kv: []string{"Authorization", "Bearer x.y"}, want: "-"},
		"a token that is no JSON":                      {part: claimed("sub"), kv: []string{"Authorization", "Bearer a.!!.c"}, want: "-"},
		"an expression":                                {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_Expression{Expression: "request.headers['x-t'].lowerAscii()"}}, kv: []string{"X-T", "AcMe"}, want: "acme"},
		"an expression that cannot be evaluated":       {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_Expression{Expression: "request.headers['x-t']"}}, want: "-"},
		"the path, normalised":                         {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_Request{Request: quotav1.RequestPart_PATH}}, want: "/users/al"},
		"the method":                                   {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_Request{Request: quotav1.RequestPart_METHOD}}, want: "GET"},
		"the host, in small letters and no port":       {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_Request{Request: quotav1.RequestPart_HOST}}, want: "shop.example"},
		"a variable of the path":                       {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_PathVariable{PathVariable: "user"}}, want: "al"},
		"a variable that no template that matched has": {part: &quotav1.KeyPart{Part: &quotav1.KeyPart_PathVariable{PathVariable: "other"}}, want: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			part, err := compileKey(tc.part)
			if err != nil {
				t.Fatal(err)
			}
			sent := request("//users/%61l", tc.kv...)
			sent.Query, sent.Host = tc.query, "Shop.example:8080"
			r := read(sent)
			m, err := compileMatch(template("/users/{user}"))
			if err != nil || !m.holds(&r) {
				t.Fatalf("the template does not match: %v", err)
			}
			text, address, ok := part.value(&r)
			got := text
			switch {
			case !ok:
				got = "-"
			case part.address != nil:
				got = address.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestARequestWithoutTheKeyIsAnsweredAsThePolicySays(t *testing.T) {
	for name, tc := range map[string]struct {
		missing quotav1.MissingKey
		want    []bool
		refusal Refusal
	}{
		"skipped: the limit does not count it": {quotav1.MissingKey_MISSING_KEY_UNSPECIFIED, []bool{true, true, true}, 0},
		"denied":                               {quotav1.MissingKey_DENY, []bool{false, false, false}, KeyMissing},
		"shared: all of them have one bucket":  {quotav1.MissingKey_SHARED, []bool{true, false, false}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := keyed(limit("each", 1, 1), byHeader("x-key"))
			l.MissingKey = tc.missing
			e := New(Options{Keys: 64})
			apply(t, e, start, snapshot("v1", l), part("each", 1, 1))
			for i, want := range tc.want {
				if d := e.Decide(request("/"), start); d.Allowed != want || !d.Allowed && d.Refusal != tc.refusal {
					t.Errorf("request %d: %+v, want allowed = %v", i, d, want)
				}
			}
			if !e.Decide(request("/", "X-Key", "a"), start).Allowed {
				t.Error("a request with the key was denied")
			}
		})
	}
}

func TestCosts(t *testing.T) {
	byHeader := &quotav1.Cost{Source: &quotav1.Cost_Header{Header: "x-cost"}}
	capped := &quotav1.Cost{Source: &quotav1.Cost_Header{Header: "x-cost"}, Max: 8, Fallback: 3}
	expr := func(s string) *quotav1.Cost { return &quotav1.Cost{Source: &quotav1.Cost_Expression{Expression: s}} }
	for name, tc := range map[string]struct {
		cost  *quotav1.Cost
		value string // of the header; none when empty
		hits  uint64
		want  uint64
	}{
		"one by default":          {nil, "", 0, 1},
		"a constant":              {&quotav1.Cost{Source: &quotav1.Cost_Tokens{Tokens: 5}}, "", 0, 5},
		"a header":                {byHeader, "7", 0, 7},
		"a header that is absent": {byHeader, "", 0, 1},
		"a header that is absent, with a fallback": {capped, "", 0, 3},
		"a fraction is rounded up":                 {byHeader, "2.1", 0, 3},
		"zero is not free":                         {byHeader, "0", 0, 1},
		"a negative cost is not free":              {byHeader, "-5", 0, 100},
		"what is no number is not free":            {byHeader, "free", 0, 100},
		"NaN is not free":                          {byHeader, "NaN", 0, 100},
		"infinity":                                 {byHeader, "Inf", 0, 100},
		"nonsense costs the cap":                   {capped, "cheap", 0, 8},
		"more than the cap is cut":                 {capped, "1e9", 0, 8},
		"more than the burst is not cut":           {byHeader, "1000", 0, 1000},
		"more than a limit can count":              {byHeader, "1e300", 0, maxCost},
		"an expression":                            {expr("request.method == 'GET' ? 2 : 9"), "", 0, 2},
		"an expression over a header":              {expr("double(request.headers['x-cost']) / 2.0"), "5", 0, 3},
		"an expression that cannot be evaluated":   {expr("int(request.headers['x-cost'])"), "", 0, 100},
		"an expression that divides by zero":       {expr("1.0 / 0.0"), "", 0, 100},
		"several hits cost as many times":          {byHeader, "7", 3, 21},
		"several hits cannot overflow":             {byHeader, "1e9", math.MaxUint64, maxCost},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := compileCost(tc.cost, 100)
			if err != nil {
				t.Fatal(err)
			}
			sent := request("/")
			sent.Hits = tc.hits
			if tc.value != "" {
				sent.Header.(http.Header).Set("X-Cost", tc.value)
			}
			r := read(sent)
			if got := c.of(&r); got != tc.want {
				t.Errorf("costs %d, want %d", got, tc.want)
			}
		})
	}
}

func TestARequestThatCostsMoreThanTheBurstIsDeniedAndTakesNothing(t *testing.T) {
	l := limit("all", 10, 10)
	l.Cost = &quotav1.Cost{Source: &quotav1.Cost_Header{Header: "x-cost"}}
	e := New(Options{})
	apply(t, e, start, snapshot("v1", l), part("all", 1, 1))
	if d := e.Decide(request("/", "X-Cost", "11"), start); d.Allowed || d.Refusal != CostTooHigh || d.RetryAfter != limiter.Never {
		t.Errorf("got %+v", d)
	}
	if d := e.Decide(request("/", "X-Cost", "10"), start); !d.Allowed {
		t.Errorf("the burst was not there any more: %+v", d)
	}
}

func variantOf(base *quotav1.Limit, name string, n uint64, v *quotav1.Variant) *quotav1.Limit {
	l := limit(base.Name, n, n)
	l.Id, l.Key = base.Id+"/"+name, base.Key
	v.BaseId, v.Name = base.Id, name
	l.Variant = v
	return l
}

func whole(ids ...string) []*quotav1.Share {
	var out []*quotav1.Share
	for _, id := range ids {
		out = append(out, &quotav1.Share{LimitId: id, Units: quotav1.Whole, FillUnits: quotav1.Whole})
	}
	return out
}

func TestOverridesGiveSomeKeysOtherNumbers(t *testing.T) {
	base := keyed(limit("each", 2, 2), byHeader("x-key"), byClient(24, 0))
	gold := variantOf(base, "override-0", 5, &quotav1.Variant{Values: []*quotav1.KeyTuple{{Values: []string{"gold", "192.0.2.99"}}}})
	e := New(Options{Keys: 64})
	apply(t, e, start, snapshot("v1", base, gold), whole(base.Id, gold.Id)...)
	if n := admitted(e, start, 10, request("/", "X-Key", "gold")); n != 5 {
		t.Errorf("the key with an override was admitted %d times, want 5", n)
	}
	if n := admitted(e, start, 10, request("/", "X-Key", "tin")); n != 2 {
		t.Errorf("another key was admitted %d times, want 2", n)
	}
	elsewhere := request("/", "X-Key", "gold")
	elsewhere.Peer = netip.MustParseAddr("198.51.100.1")
	if n := admitted(e, start, 10, elsewhere); n != 2 {
		t.Errorf("half a tuple was admitted %d times, want 2", n)
	}
	if d := e.Decide(request("/", "X-Key", "gold"), start); d.Names()[0] != "checkout/each" {
		t.Errorf("denied by %v: clients know the limit by its own name", d.Names())
	}
}

func TestTiersChooseTheNumbers(t *testing.T) {
	base := keyed(limit("each", 2, 2), byHeader("x-key"))
	base.TierBy = byHeader("x-plan")
	gold := variantOf(base, "gold", 5, &quotav1.Variant{Tier: "gold"})
	e := New(Options{Keys: 64})
	apply(t, e, start, snapshot("v1", base, gold), whole(base.Id, gold.Id)...)
	for plan, want := range map[string]int{"gold": 5, "unheard": 2, "": 2} {
		if n := admitted(e, start, 10, request("/", "X-Key", "k"+plan, "X-Plan", plan)); n != want {
			t.Errorf("plan %q was admitted %d times, want %d", plan, n, want)
		}
	}
}

func TestExemptRequestsAreNotCountedAndASpellingDoesNotBorrowTheExemption(t *testing.T) {
	s := snapshot("v1", limit("all", 1, 1))
	s.Policies[0].Exempt = &quotav1.Exempt{
		Cidrs:   []string{"10.0.0.0/8"},
		Paths:   []*quotav1.PathMatch{prefix("/healthz").Path},
		Headers: header(quotav1.HeaderMatch_PRESENT, "x-internal", "").Headers,
	}
	e := New(Options{})
	apply(t, e, start, s, part("all", 1, 1))
	inside := request("/")
	inside.Peer = netip.MustParseAddr("::ffff:10.1.2.3")
	for name, r := range map[string]*Request{"an address": inside, "a path": request("/healthz/live"), "a header": request("/", "X-Internal", "1")} {
		if n := admitted(e, start, 3, r); n != 3 {
			t.Errorf("%s: admitted %d of 3 exempt requests", name, n)
		}
	}
	if n := admitted(e, start, 3, request("/orders/../healthz")); n != 1 {
		t.Errorf("admitted %d of 3 requests for a path that an application may read as /orders, want the limit's 1", n)
	}
}

func TestWhenIsAskedAfterTheMatch(t *testing.T) {
	l := limit("all", 1, 1, prefix("/v1"))
	l.When = "request.headers['x-plan'] == 'free' && request.method == 'GET'"
	e := New(Options{})
	apply(t, e, start, snapshot("v1", l), part("all", 1, 1))
	for name, r := range map[string]*Request{"another plan": request("/v1", "X-Plan", "gold"), "no plan": request("/v1"), "another path": request("/v2", "X-Plan", "free")} {
		if n := admitted(e, start, 3, r); n != 3 {
			t.Errorf("%s: %d of 3 admitted", name, n)
		}
	}
	if n := admitted(e, start, 3, request("/v1", "X-Plan", "free")); n != 1 {
		t.Errorf("%d of 3 admitted where it holds, want 1", n)
	}
}

func TestAShadowLimitCountsAndDeniesNothing(t *testing.T) {
	shadow := limit("shadow", 1, 1)
	shadow.Shadow = true
	e := New(Options{})
	apply(t, e, start, snapshot("v1", shadow, limit("real", 3, 3)), part("shadow", 1, 1), part("real", 1, 1))
	var would []bool
	for range 4 {
		d := e.Decide(request("/"), start)
		would = append(would, len(d.WouldDeny) > 0)
		if d.Allowed == slices.Contains(d.Names(), "checkout/real") || slices.Contains(d.Names(), "checkout/shadow") {
			t.Errorf("got %+v", d)
		}
	}
	if want := []bool{false, true, true, false}; !slices.Equal(would, want) {
		t.Errorf("would have denied %v, want %v: what is denied anyway is not counted", would, want)
	}
	l := e.State(start).Policies[0].Limits[0]
	if l.Allowed != 1 || l.Denied != 2 || !l.Shadow {
		t.Errorf("the shadow limit counts %+v", l)
	}
}

func concurrent(name string, most uint64) *quotav1.Limit {
	l := limit(name, most, most)
	l.Algorithm = quotav1.Algorithm_CONCURRENCY
	return l
}

func TestConcurrencyAdmitsWhileFewerAreUnderWay(t *testing.T) {
	l := keyed(concurrent("guard", 2), byHeader("x-key"))
	e := New(Options{})
	apply(t, e, start, snapshot("v1", l), part("guard", 1, 1))
	var tickets []*Ticket
	for i, want := range []bool{true, true, false} {
		d := e.Decide(request("/", "X-Key", "a"), start)
		if d.Allowed != want {
			t.Errorf("request %d: allowed = %v", i, d.Allowed)
		}
		tickets = append(tickets, d.Ticket)
	}
	if !e.Decide(request("/", "X-Key", "b"), start).Allowed {
		t.Error("another key waits for this one")
	}
	tickets[0].End()
	tickets[0].End() // twice is once
	if n := admitted(e, start, 3, request("/", "X-Key", "a")); n != 1 {
		t.Errorf("%d admitted after one ended, want 1", n)
	}
}

func TestADenialByAnotherLimitEndsWhatConcurrencyHadAdmitted(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", concurrent("guard", 1), limit("all", 1, 1)), part("guard", 1, 1), part("all", 1, 1))
	first := e.Decide(request("/"), start)
	first.Ticket.End()
	for range 3 {
		if d := e.Decide(request("/"), start); d.Allowed || !slices.Equal(d.Names(), []string{"checkout/all"}) {
			t.Fatalf("got %+v: a denied request is still counted as under way", d)
		}
	}
	if n := e.State(start).Policies[0].Limits[0].InFlight; *n != 0 {
		t.Errorf("%d under way", *n)
	}
}

func TestASmallerConcurrencyLimitWaitsForWhatIsUnderWay(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", concurrent("guard", 4)), part("guard", 1, 1))
	var tickets []*Ticket
	for range 4 {
		tickets = append(tickets, e.Decide(request("/"), start).Ticket)
	}
	apply(t, e, start, snapshot("v2", concurrent("guard", 4)), part("guard", 2, 0))
	for i, want := range []bool{false, false, false, true} {
		if got := e.Decide(request("/"), start).Allowed; got != want {
			t.Errorf("after %d ended: allowed = %v", i, got)
		}
		tickets[i].End()
	}
}

func TestACostThatTheAnswerTellsIsSettled(t *testing.T) {
	l := limit("llm", 100, 100)
	l.Cost = &quotav1.Cost{Source: &quotav1.Cost_Response{Response: &quotav1.ResponseCost{Header: "x-tokens-used", Estimate: 40, MaxDebt: 50}}}
	left := func(e *Engine) float64 { return *e.State(start).Policies[0].Limits[0].Balance }
	engine := func() *Engine {
		e := New(Options{})
		apply(t, e, start, snapshot("v1", l), part("llm", 1, 1))
		return e
	}
	for name, tc := range map[string]struct {
		answers []http.Header
		left    float64
		denied  bool
		cost    uint64
	}{
		"less than the estimate comes back":   {[]http.Header{{"X-Tokens-Used": {"10"}}}, 90, false, 10},
		"nothing was used":                    {[]http.Header{{"X-Tokens-Used": {"0"}}}, 100, false, 0},
		"an answer that does not tell":        {[]http.Header{{}}, 60, false, 40},
		"an answer that tells nonsense":       {[]http.Header{{"X-Tokens-Used": {"-3"}}, {"X-Tokens-Used": {"many"}}}, 60, false, 40},
		"told in the trailer":                 {[]http.Header{{}, {"X-Tokens-Used": {"30"}}}, 70, false, 30},
		"told twice, settled once":            {[]http.Header{{"X-Tokens-Used": {"30"}}, {"X-Tokens-Used": {"30"}}}, 70, false, 30},
		"more than there was leads into debt": {[]http.Header{{"X-Tokens-Used": {"120"}}}, 0, true, 120},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine()
			d := e.Decide(request("/"), start)
			for _, h := range tc.answers {
				d.Ticket.Answered(h, start)
			}
			d.Ticket.End()
			if got := left(e); got != tc.left {
				t.Errorf("%v tokens are left, want %v", got, tc.left)
			}
			s := e.State(start).Policies[0].Limits[0]
			if s.AllowedCost != tc.cost || s.Allowed != 1 {
				t.Errorf("%d requests of cost %d are counted, want 1 of %d", s.Allowed, s.AllowedCost, tc.cost)
			}
			if got := !e.Decide(request("/"), start).Allowed; got != tc.denied {
				t.Errorf("denied = %v", got)
			}
		})
	}
	e := engine()
	d := e.Decide(request("/"), start)
	d.Ticket.Answered(http.Header{"X-Tokens-Used": {"1000"}}, start)
	if d := e.Decide(request("/"), at(899*time.Millisecond)); d.Allowed || d.RetryAfter != time.Millisecond {
		t.Errorf("%+v: the debt of 50 and the next estimate are earned after 900 ms", d)
	}
	if !e.Decide(request("/"), at(900*time.Millisecond)).Allowed {
		t.Error("denied after the debt was earned")
	}
}

func TestSeveralDescriptionsOfARequestAreDecidedTogether(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("a", 1, 1, prefix("/a")), limit("b", 2, 2, prefix("/b"))), part("a", 1, 1), part("b", 1, 1))
	both := []*Request{request("/a"), request("/b")}
	if d := e.DecideAll(both, start); !d.Allowed {
		t.Fatalf("got %+v", d)
	}
	if d := e.DecideAll(both, start); d.Allowed || !slices.Equal(d.Names(), []string{"checkout/a"}) {
		t.Fatalf("got %+v", d)
	}
	if n := admitted(e, start, 3, request("/b")); n != 1 {
		t.Errorf("%d left of b, want 1: the denial of a took it along", n)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("Bearer "+token(`{"sub":"a"}`), "a=1; session=x", "1.1.1.1, [::1]:80", "a=b&api_key=%41")
	var parts []keyPart
	for _, p := range []*quotav1.KeyPart{
		{Part: &quotav1.KeyPart_JwtClaim{JwtClaim: &quotav1.JWTClaim{Header: "authorization", Claim: "sub.id"}}},
		{Part: &quotav1.KeyPart_Cookie{Cookie: "session"}},
		{Part: &quotav1.KeyPart_ClientIp{ClientIp: &quotav1.ClientIP{TrustedHops: 2}}},
		{Part: &quotav1.KeyPart_Query{Query: "api_key"}},
		{Part: &quotav1.KeyPart_Request{Request: quotav1.RequestPart_HOST}},
	} {
		part, err := compileKey(p)
		if err != nil {
			f.Fatal(err)
		}
		parts = append(parts, part)
	}
	f.Fuzz(func(t *testing.T, auth, cookies, forwarded, query string) {
		sent := request("/", "Authorization", auth, "Cookie", cookies, "X-Forwarded-For", forwarded)
		sent.Query, sent.Host = query, auth
		r := read(sent)
		for i := range parts {
			text, address, ok := parts[i].value(&r)
			if parts[i].address != nil && (!ok || !address.IsValid()) {
				t.Errorf("no address though the peer is known")
			}
			if strings.Count(text, "") > 3*(len(auth)+len(cookies)+len(query))+8 {
				t.Errorf("%s made of less", fmt.Sprintf("%.40q", text))
			}
		}
	})
}
