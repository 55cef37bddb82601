// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/limiter/escrow/sim"
)

// BenchmarkPromise prints the table of the promise: `go test ./limiter/escrow/sim -run none -bench Promise -benchtime 1x`.
func BenchmarkPromise(b *testing.B) {
	for b.Loop() {
		fmt.Printf("\n| scenario | limit | use, mean | use, worst 1 %% of seconds | seconds below 95 %% | below 80 %% for | messages/s/pod | beyond the law |\n|---|---|---|---|---|---|---|---|\n")
		for _, rate := range []uint64{1_000, 10_000} {
			for _, s := range sim.Scenarios(rate) {
				row(b, s)
			}
		}
		row(b, sim.Pinned())
	}
}

func row(b *testing.B, s sim.Scenario) {
	r := sim.Measure(s, 1)
	beyond := "0"
	if r.Broken != "" {
		beyond = r.Broken
		b.Errorf("%s: %s", s.Name, r.Broken)
	}
	per := "s"
	if s.Limit.Period != uint64(time.Second) {
		per = time.Duration(s.Limit.Period).String()
	}
	fmt.Printf("| %s | %d/%s | %.2f %% | %.2f %% | %d | %s | %.1f | %s |\n", s.Name, s.Limit.Requests, per, 100*r.Mean, 100*r.Worst, r.Short, time.Duration(r.Dark), r.Messages, beyond)
}
