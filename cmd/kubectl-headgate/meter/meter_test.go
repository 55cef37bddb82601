// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
)

var begin = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// limit is one of 100 per second, of which a pod has half, after so many admissions and denials.
func limit(allowed, denied uint64) admission.LimitState {
	return admission.LimitState{ID: "1", Name: "all", Scope: "TOTAL", Requests: 100, Period: "1s", Burst: 100, RatePerSecond: 50, ShareBurst: 50,
		Allowed: allowed, AllowedCost: allowed, Denied: denied, DeniedCost: denied}
}

func said(seconds float64, incarnation string, limits ...admission.LimitState) fleet.Answer {
	return fleet.Answer{Outcome: fleet.Answered, At: begin.Add(time.Duration(seconds * float64(time.Second))), State: &admin.State{
		Incarnation: incarnation, State: admission.State{Policies: []admission.PolicyState{{Namespace: "shop", Name: "checkout", Limits: limits}}},
	}}
}

func every(string, string) bool { return true }

func TestRates(t *testing.T) {
	with := func(l admission.LimitState, change func(*admission.LimitState)) admission.LimitState {
		change(&l)
		return l
	}
	use := func(v float64) *float64 { return &v }
	one := func(r Row) []Row { r.Policy, r.Limit = "shop/checkout", "all"; return []Row{r} }
	for name, tc := range map[string]struct {
		before, after Sample
		want          []Row
	}{
		"what two pods did adds up": {
			Sample{"shop/a": said(0, "x", limit(100, 0)), "shop/b": said(0, "y", limit(7, 3))},
			Sample{"shop/a": said(2, "x", limit(180, 10)), "shop/b": said(2, "y", limit(27, 13))},
			one(Row{Pods: 2, Offered: 60, Admitted: 50, Denied: 10, Most: 100, Use: use(.5)}),
		},
		"each pod by its own clock": {
			Sample{"shop/a": said(0, "x", limit(0, 0)), "shop/b": said(1, "y", limit(0, 0))},
			Sample{"shop/a": said(4, "x", limit(40, 0)), "shop/b": said(2, "y", limit(40, 0))},
			one(Row{Pods: 2, Offered: 50, Admitted: 50, Most: 100, Use: use(.5)}),
		},
		"a pod that restarted does not count what nobody knows": {
			Sample{"shop/a": said(0, "x", limit(1000, 0)), "shop/b": said(0, "y", limit(0, 0))},
			Sample{"shop/a": said(1, "z", limit(5, 0)), "shop/b": said(1, "y", limit(10, 0))},
			one(Row{Pods: 1, Offered: 10, Admitted: 10, Most: 100, Use: use(.1)}),
		},
		"a pod that is new or silent does not count": {
			Sample{"shop/a": said(0, "x", limit(0, 0)), "shop/c": said(0, "z", limit(0, 0))},
			Sample{"shop/a": said(1, "x", limit(10, 0)), "shop/b": said(1, "y", limit(99, 0)), "shop/c": {Outcome: fleet.Silent}},
			one(Row{Pods: 1, Offered: 10, Admitted: 10, Most: 100, Use: use(.1)}),
		},
		"costs count in the use, not in the requests": {
			Sample{"shop/a": said(0, "x", limit(0, 0))},
			Sample{"shop/a": said(1, "x", with(limit(10, 0), func(l *admission.LimitState) { l.AllowedCost = 80 }))},
			one(Row{Pods: 1, Offered: 10, Admitted: 10, Most: 100, Use: use(.8)}),
		},
		"a limit of each pod grows with the pods": {
			Sample{"shop/a": said(0, "x", with(limit(0, 0), perPodScope)), "shop/b": said(0, "y", with(limit(0, 0), perPodScope))},
			Sample{"shop/a": said(1, "x", with(limit(50, 0), perPodScope)), "shop/b": said(1, "y", with(limit(50, 0), perPodScope))},
			one(Row{Pods: 2, Offered: 100, Admitted: 100, Most: 200, Use: use(.5), PerPod: true}),
		},
		"requests at once": {
			Sample{"shop/a": said(0, "x", with(limit(0, 0), atOnce(3))), "shop/b": said(0, "y", with(limit(0, 0), atOnce(0)))},
			Sample{"shop/a": said(1, "x", with(limit(9, 1), atOnce(4))), "shop/b": said(1, "y", with(limit(0, 0), atOnce(1)))},
			one(Row{Pods: 2, Offered: 10, Admitted: 9, Denied: 1, Most: 10, InFlight: new(uint64(5)), Use: use(.5)}),
		},
		"a limit with a key has no use of its own": {
			Sample{"shop/a": said(0, "x", with(limit(0, 0), keys(2)))},
			Sample{"shop/a": said(1, "x", with(limit(500, 0), keys(7)))},
			one(Row{Pods: 1, Offered: 500, Admitted: 500, Most: 100, Keys: new(7)}),
		},
		"an hour is not a second": {
			Sample{"shop/a": said(0, "x", with(limit(0, 0), hourly))},
			Sample{"shop/a": said(10, "x", with(limit(1, 0), hourly))},
			one(Row{Pods: 1, Offered: .1, Admitted: .1, Most: 100. / 3600, Use: use(3.6)}),
		},
		"nothing was asked": {Sample{}, Sample{}, []Row{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Rates(tc.before, tc.after, every, false)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Row{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func perPodScope(l *admission.LimitState) { l.Scope = perPod }
func hourly(l *admission.LimitState)      { l.Period = "1h0m0s" }
func keys(n int) func(*admission.LimitState) {
	return func(l *admission.LimitState) { l.Keys = &n }
}
func atOnce(n uint64) func(*admission.LimitState) {
	return func(l *admission.LimitState) { l.InFlight, l.Burst, l.ShareBurst = &n, 10, 5 }
}

func TestOnlyThePoliciesThatWereAskedForAreShown(t *testing.T) {
	before, after := Sample{"shop/a": said(0, "x", limit(0, 0))}, Sample{"shop/a": said(1, "x", limit(9, 0))}
	if rows := Rates(before, after, func(_, name string) bool { return name == "other" }, false); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

func TestTheTableHasBarsForPeopleAndNoneForPrograms(t *testing.T) {
	second := limit(30, 30)
	second.ID, second.Name, second.Variant, second.Keys, second.Shadow = "2", "per-key", "gold", new(3), true
	zero := second
	zero.Allowed, zero.Denied = 0, 0
	rows := Rates(
		Sample{"shop/checkout-1": said(0, "x", limit(0, 0), zero), "shop/checkout-2": said(0, "y", limit(0, 0), zero)},
		Sample{"shop/checkout-1": said(1, "x", limit(40, 0), second), "shop/checkout-2": said(1, "y", limit(25, 12), second)}, every, true)
	want := strings.TrimPrefix(`
POLICY          LIMIT                   PODS   OFFERED/S   ADMITTED/S   DENIED/S       LIMIT/S      USE
shop/checkout   all                        2          77           65         12           100      65%
  checkout-1                                          40           40          0            50      80%
  checkout-2                                          37           25         12            50      50%
shop/checkout   per-key/gold (shadow)      2         120           60         60   100 per key   3 keys
  checkout-1                                          60           30         30    50 per key        -
  checkout-2                                          60           30         30    50 per key        -`, "\n")
	if diff := cmp.Diff(want, strings.Join(Table(rows, Style{}), "\n")); diff != "" {
		t.Error(diff)
	}
	wide := Table(rows, Style{Bars: true, Colour: true})
	if !strings.HasSuffix(wide[1], "65%  ▕█████████████       ▏\x1b[0m") || !strings.HasPrefix(wide[1], "\x1b[31m") || !strings.HasPrefix(wide[2], "\x1b[33m") {
		t.Errorf("bars and colours:\n%s", strings.Join(wide, "\n"))
	}
	for _, line := range Table(rows, Style{Bars: true, Width: 40}) {
		if n := len([]rune(line)); n > 40 {
			t.Errorf("%d columns in a window of 40: %q", n, line)
		}
	}
}

func TestABarIsAsLongAsTheUse(t *testing.T) {
	for use, want := range map[float64]string{-1: "▕                    ▏", 0: "▕                    ▏", 0.5: "▕██████████          ▏", 0.506: "▕██████████▏         ▏", 1: "▕████████████████████▏", 7: "▕████████████████████▏"} {
		if got := bar(&use); got != want {
			t.Errorf("%v: %q, want %q", use, got, want)
		}
	}
	if bar(nil) != "" {
		t.Error("a bar of nothing")
	}
}
