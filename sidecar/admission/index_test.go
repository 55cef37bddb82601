// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// However many limits there are, and however a path is spelt, the index leaves none out that applies.
func TestTheIndexFindsEveryLimitThatApplies(t *testing.T) {
	segment := rapid.SampledFrom([]string{"", "a", "b", "v1", ".", "..", "%61", "a%2Fb", "b;x=1", `a\b`, "%2e%2e"})
	path := rapid.Custom(func(t *rapid.T) string {
		out := ""
		for _, s := range rapid.SliceOfN(segment, 1, 4).Draw(t, "segments") {
			out += "/" + s
		}
		return out
	})
	match := rapid.Custom(func(t *rapid.T) *quotav1.Match {
		m := &quotav1.Match{}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			m = exact(path.Draw(t, "exact"))
		case 1:
			m = prefix(path.Draw(t, "prefix"))
		case 2:
			m = template(rapid.SampledFrom([]string{"/{x}", "/a/{x}", "/a/{x}/b", "/v1/{x...}", "/a"}).Draw(t, "template"))
		case 3:
			m = pattern(rapid.SampledFrom([]string{"/a.*", "/.*b"}).Draw(t, "pattern"))
		case 4:
			m = headers("x-tier", rapid.SampledFrom([]string{"free", "gold"}).Draw(t, "tier"))
		case 5:
			m.Hosts = []string{rapid.SampledFrom([]string{"shop.example", "*.example"}).Draw(t, "host")}
		case 6:
			m.Methods = []string{"GET"}
		}
		if rapid.Bool().Draw(t, "more") {
			m.Methods = []string{rapid.SampledFrom([]string{"GET", "PUT"}).Draw(t, "method")}
		}
		return m
	})
	rapid.Check(t, func(rt *rapid.T) {
		var limits []*quotav1.Limit
		for i := range rapid.IntRange(fewLimits+1, 3*fewLimits).Draw(rt, "limits") {
			limits = append(limits, limit(fmt.Sprint("l", i), 1, 1, rapid.SliceOfN(match, 0, 3).Draw(rt, "matches")...))
		}
		e := New(Options{})
		if err := e.Apply(snapshot("v1", limits...), nil, start); err != nil {
			rt.Fatal(err)
		}
		table := e.table.Load()
		r := read(&Request{
			Method: rapid.SampledFrom([]string{"GET", "PUT"}).Draw(rt, "method"), Path: path.Draw(rt, "path"),
			Host:   rapid.SampledFrom([]string{"Shop.example:80", "a.example", "b"}).Draw(rt, "host"),
			Header: http.Header{"X-Tier": rapid.SliceOfN(rapid.SampledFrom([]string{"free", "gold", "x"}), 0, 2).Draw(rt, "tiers")},
		})
		found := table.index.find(&r, len(table.bases), nil)
		for i, l := range table.bases {
			if l.applies(&r) && !slices.Contains(found, i) {
				rt.Fatalf("path %q steps around limit %v", r.Path, l.matches)
			}
		}
	})
}

func thousand(t testing.TB, match func(i int) *quotav1.Match) *Engine {
	var limits []*quotav1.Limit
	for i := range 1000 {
		limits = append(limits, limit(fmt.Sprint("l", i), 1, 1, match(i)))
	}
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limits...))
	return e
}

func BenchmarkMatchAmongAThousandLimits(b *testing.B) {
	for name, match := range map[string]func(i int) *quotav1.Match{
		"exact paths": func(i int) *quotav1.Match { return exact(fmt.Sprintf("/v1/r%d/list", i)) },
		"prefixes":    func(i int) *quotav1.Match { return prefix(fmt.Sprintf("/v1/r%d", i)) },
		"templates":   func(i int) *quotav1.Match { return template(fmt.Sprintf("/v1/r%d/{id}", i)) },
		"headers":     func(i int) *quotav1.Match { return headers("x-tenant", fmt.Sprint("t", i)) },
		"hosts":       func(i int) *quotav1.Match { return &quotav1.Match{Hosts: []string{fmt.Sprintf("t%d.example", i)}} },
	} {
		b.Run(name, func(b *testing.B) {
			e := thousand(b, match)
			r := request("/v1/r500/list", "X-Tenant", "t500")
			r.Host = "t500.example"
			b.ReportAllocs()
			for b.Loop() {
				if d := e.Decide(r, start); d.Allowed {
					b.Fatal("no limit matched")
				}
			}
		})
	}
}
