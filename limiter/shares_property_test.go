// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// What one limit grants in all may not depend on how it is split: shares are moved about at random, each move shrinking
// before it grows, pods come with an empty share and go, and the sum of what all pods granted obeys the law of the one
// limit.
func TestASplitLimitGrantsNoMoreThanTheWholeWhileItsPartsAreMoved(t *testing.T) {
	const whole = 1 << 20
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := drawRate(t), drawBurst(t)
		type pod struct {
			bucket *TokenBucket
			part   uint64
		}
		first, _ := NewTokenBucketAt(0, rate, burst, Full)
		pods, all, spare := []pod{{first, whole}}, 1, uint64(0)
		total := newIdeal(0, rate, burst, Full)
		var grants []grant
		at := Time(0)
		set := func(p *pod, part uint64) {
			p.part = part
			if err := p.bucket.ReconfigureAt(at, rate.Part(part, whole), burst.Part(part, whole), AsEarned); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			at = at.Add(drawStep(t, rate, burst))
			i := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			p := &pods[i]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0: // shrink
				part := rapid.Uint64Range(0, p.part).Draw(t, "part")
				spare += p.part - part
				set(p, part)
			case 1: // grow
				more := rapid.Uint64Range(0, spare).Draw(t, "more")
				spare -= more
				set(p, p.part+more)
			case 2: // join, empty
				more := rapid.Uint64Range(0, spare).Draw(t, "more")
				spare -= more
				b, err := NewTokenBucketAt(at, rate.Part(more, whole), burst.Part(more, whole), 0)
				if err != nil {
					t.Fatal(err)
				}
				pods, all = append(pods, pod{b, more}), all+1
			case 3: // leave, with whatever was left in the share
				if len(pods) > 1 {
					spare += p.part
					pods = append(pods[:i], pods[i+1:]...)
				}
			default:
				cost := drawCost(t, p.bucket.PeekAt(at, 0).Remaining)
				if p.bucket.AllowAt(at, cost) {
					total.advance(at)
					grants = append(grants, grant{at, cost, total.burst, new(big.Rat).Set(total.earned)})
				}
			}
		}
		lawful(t, grants, all)
	})
}
