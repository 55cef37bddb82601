// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// Whatever is assigned and whenever, what a pod admits in any interval is no more than what the shares allowed in it: the
// largest burst that was in force, and what the rates earned. (The fill comes out of the burst.)
func TestRapidAssignmentsMintNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type spell struct { // from an instant on
			from        limiter.Time
			rate, burst float64
		}
		e := New(Options{Keys: 16})
		now := start
		var spells []spell
		var grants []limiter.Time
		hasKey := rapid.Bool().Draw(t, "hasKey")
		r := request("/", "X-Key", "a")
		assign := func() {
			l := limit("all", rapid.Uint64Range(1, 2000).Draw(t, "rate"), rapid.Uint64Range(1, 50).Draw(t, "burst"))
			if hasKey {
				l = keyed(l, byHeader("x-key"))
			}
			s := &quotav1.Share{LimitId: l.Id, Units: rapid.Uint64Range(0, quotav1.Whole).Draw(t, "units")}
			if rapid.Bool().Draw(t, "fills") && len(spells) == 0 {
				s.FillUnits = quotav1.Whole
			}
			if err := e.Apply(snapshot("v", l), []*quotav1.Share{s}, now); err != nil {
				t.Fatal(err)
			}
			fraction := float64(s.Units) / float64(quotav1.Whole)
			spells = append(spells, spell{now, fraction * float64(l.Rate.Requests), fraction * float64(l.Burst)})
		}
		assign()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "pause")))
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				assign()
			}
			for range rapid.IntRange(0, 20).Draw(t, "requests") {
				if d := e.Decide(r, now); d.Allowed {
					grants = append(grants, now)
				}
			}
		}
		for i, from := range grants {
			for n := i; n < len(grants); n++ {
				until, allowed, most := grants[n], 0.0, 0.0
				for k, s := range spells {
					end := until
					if k+1 < len(spells) {
						end = min(end, spells[k+1].from)
					}
					if begin := max(s.from, from); end >= begin && (k+1 == len(spells) || spells[k+1].from >= from) && s.from <= until {
						allowed += s.rate * end.Sub(begin).Seconds()
						most = max(most, s.burst)
					}
				}
				if got := float64(n - i + 1); got > most+allowed+1e-3 {
					t.Fatalf("%v admitted in %v, at most %v + %v allowed", got, until.Sub(from), most, allowed)
				}
			}
		}
	})
}
