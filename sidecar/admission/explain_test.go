// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func TestAnExplanationSaysOfEveryLimitWhatItMakesOfTheRequestAndTakesNothing(t *testing.T) {
	gold := limit("per-key", 1, 1, prefix("/v1"))
	gold = keyed(gold, byHeader("x-key"), byClient(24, 0))
	more := variantOf(gold, "override-gold", 5, &quotav1.Variant{Values: []*quotav1.KeyTuple{{Values: []string{"gold", "192.0.2.7"}}}})
	when := limit("when", 1, 1)
	when.When = "request.headers['x-plan'] == 'free'"
	costly := limit("costly", 2, 2)
	costly.Cost = &quotav1.Cost{Source: &quotav1.Cost_Header{Header: "x-cost"}}
	deny := keyed(limit("deny", 1, 1, exact("/v1/keyless")), byHeader("x-none"))
	deny.MissingKey = quotav1.MissingKey_DENY
	e := New(Options{Keys: 64})
	limits := []*quotav1.Limit{gold, more, when, costly, deny, delaying(limit("slow", 10, 1, exact("/slow")), time.Second), concurrent("guard", 1)}
	s := snapshot("v1", limits...)
	s.Policies[0].Exempt = &quotav1.Exempt{Cidrs: []string{"10.0.0.0/8"}}
	var ids []string
	for _, l := range limits {
		ids = append(ids, l.Id)
	}
	apply(t, e, start, s, whole(ids...)...)
	explain := func(r *Request) map[string]LimitExplanation {
		x, ok := e.Explain(r, start)
		if !ok || x.SnapshotVersion != "v1" {
			t.Fatalf("no explanation: %+v", x)
		}
		out := map[string]LimitExplanation{"": {Would: x.Verdict}}
		for _, l := range x.Limits {
			out[l.Limit] = l
		}
		return out
	}

	for range 2 { // nothing is taken
		x := explain(request("/v1/x", "X-Key", "gold", "X-Cost", "2"))
		if l := x["per-key"]; !l.Counts || l.Variant != "override-gold" || l.Remaining != 5 || l.Would != WouldAdmit || !slices.Equal(l.Key, []string{"gold", "192.0.2.0"}) {
			t.Errorf("per-key: %+v", l)
		}
		if l := x["when"]; l.Counts || !strings.Contains(l.Why, "when cannot be evaluated") {
			t.Errorf("when: %+v", l)
		}
		if l := x["costly"]; l.Cost != 2 || l.Would != WouldAdmit {
			t.Errorf("costly: %+v", l)
		}
		if l := x["slow"]; l.Counts || l.Why != "no entry of match holds" {
			t.Errorf("slow: %+v", l)
		}
		if x[""].Would != "admitted" {
			t.Errorf("verdict %+v", x[""])
		}
	}
	if l := explain(request("/v1/x"))["per-key"]; l.Counts || l.Why != "the request lacks a part of the key" || l.Key[0] != "(missing)" {
		t.Errorf("without the key: %+v", l)
	}
	if x := explain(request("/v1/keyless")); x["deny"].Would != WouldDeny || x[""].Would != "denied" {
		t.Errorf("denied for its key: %+v", x)
	}
	if x := explain(request("/", "X-Cost", "3")); x["costly"].Would != WouldDeny || !strings.Contains(x["costly"].Why, "can ever admit") {
		t.Errorf("too costly: %+v", x["costly"])
	}
	inside := request("/v1/x")
	inside.Peer = netip.MustParseAddr("10.1.1.1")
	if l := explain(inside)["costly"]; l.Counts || l.Why != "the policy exempts the request" {
		t.Errorf("exempt: %+v", l)
	}
	d := e.Decide(request("/slow", "X-Cost", "1"), start)
	if !d.Allowed {
		t.Fatalf("got %+v", d)
	}
	x := explain(request("/slow", "X-Cost", "1"))
	if l := x["slow"]; l.Would != WouldHold || l.RetryAfterSeconds != 0.1 {
		t.Errorf("slow: %+v", l)
	}
	if l := x["guard"]; l.Would != WouldDeny || l.Remaining != 0 || x[""].Would != "denied" {
		t.Errorf("guard: %+v", l)
	}
	if _, ok := New(Options{}).Explain(request("/"), start); ok {
		t.Error("explained without a snapshot")
	}
}
