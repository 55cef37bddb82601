// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"testing"

	"github.com/headgate/headgate/limiter/escrow/sim"
)

var (
	seeds = flag.Int("seeds", 150, "how many seeds to run")
	seed  = flag.Uint64("seed", 0, "the one seed to run; 0 runs them all")
)

func TestNoSeedLetsMorePassThanOneBucketWould(t *testing.T) {
	var admitted int64
	tightest := 0.0
	run := func(s uint64) {
		w := sim.Chaos(s)
		if broken := w.Broken(); broken != "" {
			t.Errorf("seed %d: %s\nreplay: go test ./limiter/escrow/sim -run Seed -seed %d", s, broken, s)
		}
		admitted += w.Admitted
		tightest = max(tightest, w.Tightest())
	}
	if *seed != 0 {
		run(*seed)
	} else {
		for s := range *seeds {
			run(uint64(s) + 1)
		}
	}
	if admitted == 0 && *seed == 0 && *seeds >= 100 {
		t.Error("nothing was ever admitted")
	}
	t.Logf("%d admitted; the tightest interval used %.1f %% of its burst", admitted, 100*tightest)
}

func TestASeedReplaysTheSameWorld(t *testing.T) {
	a, b := sim.Chaos(7), sim.Chaos(7)
	if a.Messages != b.Messages || a.Admitted != b.Admitted || a.Offered != b.Offered {
		t.Errorf("two runs of one seed differ: %d and %d messages, %d and %d admitted", a.Messages, b.Messages, a.Admitted, b.Admitted)
	}
}
