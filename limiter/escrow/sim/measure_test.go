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
	const hour, minute = int64(time.Hour), int64(time.Minute)
	l := escrow.Limit{Requests: 5, Period: uint64(hour), Burst: 5}
	w := sim.New(1, l, minute, 0)
	w.Net = sim.Network{Delay: 2 * int64(time.Millisecond)}
	w.Step = int64(time.Second)
	w.Lead()
	for range 50 {
		w.Start(0.02)
	}
	for h := range int64(10) {
		w.At(h*hour+hour/2, func() { w.Restart(int64(time.Second)) })
		w.Run((h+1)*hour + minute)
		if want := 5 + 5*(h+1); w.Admitted != want {
			t.Errorf("after %d hours and a minute %d were admitted, not %d", h+1, w.Admitted, want)
		}
	}
	if broken := w.Oracle.Broken(); broken != "" {
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
		if r.Short > s.Short {
			t.Errorf("%s: %d seconds below 95 %%, promised are %d", s.Name, r.Short, s.Short)
		}
	}
}
