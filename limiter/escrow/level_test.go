// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/limiter/escrow"
)

// sorted is the split by sorting: slow, and plain to see.
func sorted(wants []int64, avail int64) int64 {
	w := slices.Sorted(slices.Values(wants))
	for i, x := range w {
		if left := int64(len(w) - i); x > avail/left {
			return avail / left
		}
		avail -= x
	}
	if len(w) == 0 {
		return 0
	}
	return w[len(w)-1]
}

func TestTheWaterLevelIsTheOneThatSortingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants := rapid.SliceOf(rapid.Int64Range(0, 1000)).Draw(t, "wants")
		avail := rapid.Int64Range(0, 20_000).Draw(t, "avail")
		level := escrow.Level(wants, avail)
		given := int64(0)
		for _, w := range wants {
			given += min(w, level)
		}
		if given > avail {
			t.Fatalf("level %d gives away %d of %d", level, given, avail)
		}
		if want := sorted(wants, avail); level != want {
			t.Fatalf("level %d, want %d", level, want)
		}
	})
}

// The goal is 100 us for 10,000 pods, without an allocation.
func BenchmarkLevelOverTenThousandPods(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	wants := make([]int64, 10_000)
	var sum int64
	for i := range wants {
		wants[i] = int64(100_000 / (1 + r.IntN(10_000)))
		sum += wants[i]
	}
	b.ReportAllocs()
	for b.Loop() {
		escrow.Level(wants, sum/2)
	}
}
