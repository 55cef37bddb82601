// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

func TestMetricsSayWhatTheEngineDid(t *testing.T) {
	keyed := admission.LimitState{
		Name: "per-key", Variant: "gold", Allowed: 5, Denied: 6, AllowedCost: 10, DeniedCost: 12, RatePerSecond: 2.5, SharedKeys: 3, Keys: new(7),
		Held: new(uint64(8)), Waiting: new(uint64(2)), Lent: &admission.LentState{Outstanding: 4, Turned: 9},
	}
	for name, tc := range map[string]struct {
		connected bool
		policies  []admission.PolicyState
		only      []string
		want      string
	}{
		"a lost operator is seen": {
			only: []string{"headgate_quota_connected"},
			want: `# HELP headgate_quota_connected 1 while the stream to the leading operator is alive.
# TYPE headgate_quota_connected gauge
headgate_quota_connected 0
`},
		"denials of a limit in shadow mode are not counted as denials": {
			connected: true,
			only:      []string{"headgate_requests_total"},
			policies:  []admission.PolicyState{{Name: "a", Limits: []admission.LimitState{{Name: "all", Shadow: true, Allowed: 3, Denied: 4}}}},
			want: `# HELP headgate_requests_total Requests that a limit decided, by what it said. would_deny is of limits in shadow mode, which let through what they would deny.
# TYPE headgate_requests_total counter
headgate_requests_total{decision="allowed",limit="all",policy="a"} 3
headgate_requests_total{decision="would_deny",limit="all",policy="a"} 4
`},
		"limits of the same name in two policies are told apart": {
			connected: true,
			only:      []string{"headgate_balance_tokens", "headgate_snapshot_generation"},
			policies: []admission.PolicyState{
				{Name: "a", Generation: 2, Limits: []admission.LimitState{{Name: "all", Balance: new(1.5)}}},
				{Name: "b", Generation: 3, Limits: []admission.LimitState{{Name: "all", Balance: new(-2.0)}}},
			},
			want: `# HELP headgate_balance_tokens Tokens that a limit without a key has left in this pod.
# TYPE headgate_balance_tokens gauge
headgate_balance_tokens{limit="all",policy="a"} 1.5
headgate_balance_tokens{limit="all",policy="b"} -2
# HELP headgate_snapshot_generation Generation of a policy that is in force in this pod.
# TYPE headgate_snapshot_generation gauge
headgate_snapshot_generation{policy="a"} 2
headgate_snapshot_generation{policy="b"} 3
`},
		"a limit with keys, variants and loans says all that is known": {
			connected: true,
			only: []string{
				"headgate_requests_total", "headgate_request_cost_total", "headgate_share_tokens_per_second", "headgate_keys", "headgate_balance_tokens",
				"headgate_shared_key_decisions_total", "headgate_held_requests_total", "headgate_waiting_requests", "headgate_borrowed_tokens",
				"headgate_keys_not_lent_total",
			},
			policies: []admission.PolicyState{{Name: "a", Limits: []admission.LimitState{keyed}}},
			want: `# HELP headgate_borrowed_tokens Tokens that this pod has borrowed and not spent.
# TYPE headgate_borrowed_tokens gauge
headgate_borrowed_tokens{limit="per-key/gold",policy="a"} 4
# HELP headgate_held_requests_total Requests that had to wait for their tokens, of limits that delay or whose tokens are lent.
# TYPE headgate_held_requests_total counter
headgate_held_requests_total{limit="per-key/gold",policy="a"} 8
# HELP headgate_keys Keys that a limit remembers in this pod.
# TYPE headgate_keys gauge
headgate_keys{limit="per-key/gold",policy="a"} 7
# HELP headgate_keys_not_lent_total How often a key ran short and was not let borrow, since too many do: it lives on the pod's share.
# TYPE headgate_keys_not_lent_total counter
headgate_keys_not_lent_total{limit="per-key/gold",policy="a"} 9
# HELP headgate_request_cost_total Tokens that the requests of headgate_requests_total cost.
# TYPE headgate_request_cost_total counter
headgate_request_cost_total{decision="allowed",limit="per-key/gold",policy="a"} 10
headgate_request_cost_total{decision="denied",limit="per-key/gold",policy="a"} 12
# HELP headgate_requests_total Requests that a limit decided, by what it said. would_deny is of limits in shadow mode, which let through what they would deny.
# TYPE headgate_requests_total counter
headgate_requests_total{decision="allowed",limit="per-key/gold",policy="a"} 5
headgate_requests_total{decision="denied",limit="per-key/gold",policy="a"} 6
# HELP headgate_share_tokens_per_second Rate of this pod's share of a limit; of each key, where the limit has keys.
# TYPE headgate_share_tokens_per_second gauge
headgate_share_tokens_per_second{limit="per-key/gold",policy="a"} 2.5
# HELP headgate_shared_key_decisions_total Decisions on keys that found no memory of their own and were counted together, on the strict side.
# TYPE headgate_shared_key_decisions_total counter
headgate_shared_key_decisions_total{limit="per-key/gold",policy="a"} 3
# HELP headgate_waiting_requests Requests that wait for their tokens now, of limits that delay or whose tokens are lent.
# TYPE headgate_waiting_requests gauge
headgate_waiting_requests{limit="per-key/gold",policy="a"} 2
`},
		"a limit of concurrency shows what is under way": {
			connected: true,
			only:      []string{"headgate_in_flight_requests"},
			policies:  []admission.PolicyState{{Name: "a", Limits: []admission.LimitState{{Name: "all", InFlight: new(uint64(3))}}}},
			want: `# HELP headgate_in_flight_requests Requests under way that a limit of concurrency counts in this pod.
# TYPE headgate_in_flight_requests gauge
headgate_in_flight_requests{limit="all",policy="a"} 3
`},
	} {
		t.Run(name, func(t *testing.T) {
			a := New(Options{
				Version: "v1",
				Engine:  &engine{state: admission.State{Policies: tc.policies}},
				Clock:   limiter.Now,
				Quota:   func() quota.Status { return quota.Status{Connected: tc.connected} },
			})
			if err := testutil.GatherAndCompare(a.metrics.registry, strings.NewReader(tc.want), tc.only...); err != nil {
				t.Error(err)
			}
		})
	}
}
