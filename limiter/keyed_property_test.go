// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"

	"pgregory.net/rapid"
)

// checkKeyed runs one random trace on a store, and on a bucket and an ideal one for each key. With room for all keys
// the store must decide as the buckets do, to the millionth. Without, it must be lawful.
func checkKeyed(t *rapid.T, room bool) {
	const keys = 40
	at := Time(rapid.Int64Range(-1<<62, 1<<61).Draw(t, "start"))
	rate, burst := drawRate(t), drawBurst(t)
	level := rapid.SampledFrom([]Tokens{Full, 0, burst / 2}).Draw(t, "level")
	size := 1 // 16 slots
	if room {
		size = 2 * keys
	}
	k, err := NewKeyedAt(at, rate, burst, level, size)
	if err != nil {
		t.Fatal(err)
	}
	var buckets [keys]*TokenBucket
	var models [keys]*ideal
	var grants [keys][]grant
	for i := range buckets {
		buckets[i], _ = NewTokenBucketAt(at, rate, burst, level)
		models[i] = newIdeal(at, rate, burst, level)
	}
	for range rapid.IntRange(1, 150).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "wait") {
			at = at.Add(drawStep(t, rate, burst))
		}
		if rapid.IntRange(0, 19).Draw(t, "reconfigure") == 0 {
			rate, burst = drawRate(t), rapid.OneOf(rapid.Just(burst), rapid.Custom(drawBurst)).Draw(t, "next")
			if err := k.ReconfigureAt(at, rate, burst, AsEarned); err != nil {
				t.Fatal(err)
			}
			for i, b := range buckets {
				if err := b.ReconfigureAt(at, rate, burst, AsEarned); err != nil {
					t.Fatal(err)
				}
				models[i].reconfigure(at, rate, burst, AsEarned)
			}
		}
		key := rapid.IntRange(0, keys-1).Draw(t, "key")
		cost := drawCost(t, k.PeekHashAt(at, uint64(key), 0).Remaining)
		got := k.TakeHashAt(at, uint64(key), cost)
		if room {
			want := buckets[key].TakeAt(at, cost)
			// A crooked rate may round differently after the marks were shifted back at different times.
			if *k.nums.Load() == *buckets[key].nums.Load() && got != want {
				t.Fatalf("key %d at %d: the store says %+v, a bucket says %+v", key, at, got, want)
			}
			models[key].agree(t, at, cost, got)
		} else if got.Allowed {
			models[key].advance(at)
			grants[key] = append(grants[key], grant{at, cost, models[key].burst, models[key].earned})
		}
	}
	for _, g := range grants {
		lawful(t, g, 1)
	}
	if room && k.Strict() != 0 {
		t.Fatalf("%d decisions were strict in a store with room", k.Strict())
	}
}

func TestEveryKeyIsLimitedAsIfItHadABucketOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkKeyed(t, true) })
}

func TestNoKeyGetsMoreThanTheLawFromAStoreThatIsTooSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkKeyed(t, false) })
}

func FuzzKeyedAgainstBuckets(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkKeyed(t, rapid.Bool().Draw(t, "room")) }))
}
