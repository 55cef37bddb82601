// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// grant is one admission.
type grant struct {
	at   Time
	cost uint64
	// burst in force, and what the rates in force had earned since the start, in millionths
	burst, earned *big.Rat
}

// lawful fails the test unless in every window less was granted than the burst at its start, what was earned in it, and
// a millionth for each bucket.
func lawful(t *rapid.T, grants []grant, buckets int) {
	for i, from := range grants {
		sum := new(big.Rat)
		for _, to := range grants[i:] {
			sum.Add(sum, rat(int64(price(to.cost))))
			most := new(big.Rat).Sub(to.earned, from.earned)
			if most.Add(most, from.burst).Add(most, rat(int64(buckets))); sum.Cmp(most) >= 0 {
				t.Fatalf("from %d to %d granted %s, less than %s is lawful", from.at, to.at, sum.FloatString(6), most.FloatString(6))
			}
		}
	}
}

func checkBucket(t *rapid.T) {
	at := Time(rapid.Int64Range(-1<<62, 1<<61).Draw(t, "start"))
	rate, burst := drawRate(t), drawBurst(t)
	start := rapid.SampledFrom([]Tokens{Full, 0, burst / 2}).Draw(t, "level")
	b, err := NewTokenBucketAt(at, rate, burst, start)
	if err != nil {
		t.Fatal(err)
	}
	model := newIdeal(at, rate, burst, start)
	var grants []grant
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		at = at.Add(drawStep(t, rate, burst))
		if rapid.IntRange(0, 9).Draw(t, "reconfigure") == 0 {
			rate, burst = drawRate(t), rapid.OneOf(rapid.Just(burst), rapid.Custom(drawBurst)).Draw(t, "next")
			growth := rapid.SampledFrom([]Growth{AsEarned, AsEarned, AtOnce}).Draw(t, "growth")
			before := b.PeekAt(at, 0).Remaining
			if err := b.ReconfigureAt(at, rate, burst, growth); err != nil {
				t.Fatal(err)
			}
			if after := b.PeekAt(at, 0).Remaining; growth == AsEarned && after > before {
				t.Fatalf("reconfiguring minted: %v became %v", before, after)
			}
			if growth == AtOnce {
				grants = nil // the law starts anew where a person raised the limit at once
			}
			model.reconfigure(at, rate, burst, growth)
		}
		cost := drawCost(t, b.PeekAt(at, 0).Remaining)
		d := b.TakeAt(at, cost)
		model.agree(t, at, cost, d)
		if d.Allowed {
			grants = append(grants, grant{at, cost, model.burst, model.earned})
			continue
		}
		if price(cost) > uint64(burst) && d.RetryAfter != Never {
			t.Fatalf("a cost of %d at burst %v is to wait %v", cost, burst, d.RetryAfter)
		}
		if later := at.Add(d.RetryAfter); d.RetryAfter != Never && later.Sub(at) == d.RetryAfter {
			if p := b.PeekAt(later, cost); !p.Allowed {
				t.Fatalf("refused %d at %d, and again after the wait of %v: %+v", cost, at, d.RetryAfter, p)
			}
			if p := b.PeekAt(later-1, cost); p.Allowed {
				t.Fatalf("refused %d at %d, but granted before the wait of %v is over", cost, at, d.RetryAfter)
			}
		}
	}
	lawful(t, grants, 1)
}

func TestABucketNeverGrantsMoreThanTheLawNorRefusesMoreThanItsResolution(t *testing.T) {
	rapid.Check(t, checkBucket)
}

func FuzzBucketAgainstTheIdealOne(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkBucket)) }
