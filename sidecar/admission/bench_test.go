// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// cases are the decisions that must not allocate.
func cases(t testing.TB) map[string]func() Decision {
	engine := func(limits ...*quotav1.Limit) *Engine {
		e := New(Options{Keys: 1024})
		var shares []*quotav1.Share
		for _, l := range limits {
			shares = append(shares, part(l.Name, 1, 1))
		}
		apply(t, e, start, snapshot("v1", limits...), shares...)
		return e
	}
	decide := func(e *Engine, r *Request) func() Decision {
		return func() Decision { return e.Decide(r, start) }
	}
	const most = 1_000_000_000
	r := request("/v1/items/7", "X-Tier", "free", "X-Api-Key", "gold-7f3")
	first := prefix("/v1")
	first.Methods = []string{"GET"}
	first.Headers = headers("x-tier", "free").Headers
	return map[string]func() Decision{
		"no limit matches":                 decide(engine(limit("a", 1, 1, prefix("/other"))), r),
		"one limit by path and header":     decide(engine(limit("a", most, most, first)), r),
		"one limit with a header key":      decide(engine(keyed(limit("a", most, most), byHeader("x-api-key"))), r),
		"one limit with a client key":      decide(engine(keyed(limit("a", most, most), byClient(0, 0))), r),
		"two limits, one with a key":       decide(engine(keyed(limit("a", most, most), byHeader("x-api-key")), limit("b", most, most)), r),
		"a denial by one limit":            decide(engine(limit("a", 1, 1)), r),
		"a denial by one of two limits":    decide(engine(limit("a", 1, 1), limit("b", most, most)), r),
		"a denial of a key":                decide(engine(keyed(limit("a", 1, 1), byHeader("x-api-key"))), r),
		"ten limits, of which one matches": decide(engine(ten(first, most)...), r),
	}
}

func ten(first *quotav1.Match, most uint64) []*quotav1.Limit {
	limits := []*quotav1.Limit{limit("first", most, most, first)}
	for i := range 9 {
		limits = append(limits, limit(fmt.Sprint("l", i), 1, 1, prefix(fmt.Sprint("/v", i+2))))
	}
	return limits
}

func TestADecisionDoesNotAllocate(t *testing.T) {
	for name, decide := range cases(t) {
		t.Run(name, func(t *testing.T) {
			if n := testing.AllocsPerRun(1000, func() { _ = decide() }); n > 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, decide := range cases(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = decide()
			}
		})
	}
}
