// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
	"github.com/headgate/headgate/limiter/escrow/sim"
)

func TestFivePerHourOverFiftyPodsIsFivePerHourThoughTheOperatorRestartsEachHour(t *testing.T) {
	if raced {
		t.Skip("takes too long")
	}
	admitted, broken := sim.Hourly(1)
	for h, n := range admitted {
		if want := 5 + 5*int64(h+1); n != want {
			t.Errorf("after %d hours and a minute %d were admitted, not %d", h+1, n, want)
		}
	}
	if broken != "" {
		t.Error(broken)
	}
}

func TestDemandThatJumpsToAnotherPodIsServedAtOnce(t *testing.T) {
	if raced {
		t.Skip("takes too long")
	}
	for _, rate := range []uint64{1_000, 10_000} {
		s := sim.Scenarios(rate)[2]
		r := sim.Measure(s, 1)
		for at := int64(0); at < s.Lasts; at += 2 * int64(time.Second) {
			if back := r.BackAt(s.Limit, at); back < 0 || back > 25*int64(time.Millisecond) {
				t.Errorf("%d/s: 95 %% of the limit was back %s after a jump", rate, time.Duration(back))
			}
		}
	}
}

func TestThePromiseIsKeptInEveryScenario(t *testing.T) {
	if raced || testing.Short() {
		t.Skip("takes too long")
	}
	for _, s := range append(sim.Scenarios(1_000), sim.Pinned()) {
		r := sim.Measure(s, 2)
		if r.Broken != "" {
			t.Errorf("%s: %s", s.Name, r.Broken)
		}
		if r.Mean < s.Mean || r.Worst < s.Worst {
			t.Errorf("%s: use %.2f %%, in the worst seconds %.2f %%; promised are %.2f %% and %.2f %%",
				s.Name, 100*r.Mean, 100*r.Worst, 100*s.Mean, 100*s.Worst)
		}
		if s.Gone > 0 && (r.Away < 0.95 || r.Dark > 2*escrow.Sleep) {
			t.Errorf("%s: pods admitted %.1f %% of what their shares allow, and less than 80 %% for %s", s.Name, 100*r.Away, time.Duration(r.Dark))
		}
		if r.Messages > 100 {
			t.Errorf("%s: %.1f messages per second and pod", s.Name, r.Messages)
		}
		if r.Short > s.Short {
			t.Errorf("%s: %d seconds below 95 %%, promised are %d", s.Name, r.Short, s.Short)
		}
	}
}

func TestPodsThatAreAllBusyHardlyTalk(t *testing.T) {
	if raced || testing.Short() {
		t.Skip("takes too long")
	}
	s := sim.Scenarios(10_000)[0] // 50 pods, 20 tokens of the burst for each
	if r := sim.Measure(s, 2); r.Messages > 5 || r.Mean < s.Mean {
		t.Errorf("%.1f messages per second and pod, use %.2f %%", r.Messages, 100*r.Mean)
	}
}

func TestTheOracleSeesWhatPeersAdmitBeyondTheLaw(t *testing.T) {
	if raced || testing.Short() {
		t.Skip("takes too long")
	}
	scale := sim.Scenarios(1_000)[3]
	if r := sim.MeasurePeer(scale, sim.EvenSplit(), 1); r.Broken == "" {
		t.Error("an even split that learns of new pods 1.5 s late is within the law while pods come: the oracle sees nothing")
	}
	jump := sim.Scenarios(1_000)[2]
	if r := sim.MeasurePeer(jump, sim.Optimistic(), 1); r.Broken == "" {
		t.Error("a bucket that goes into debt is within the law: the oracle sees nothing")
	}
}
