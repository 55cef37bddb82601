// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"github.com/headgate/headgate/limiter/escrow/sim"
)

// row is one scenario under one way to share the limit.
type row struct {
	Scenario string  `json:"scenario"`
	Limit    string  `json:"limit"`
	Peer     string  `json:"peer,omitempty"`
	Mean     float64 `json:"useMean"`
	Worst    float64 `json:"useWorstSecondInAHundred"`
	Short    int     `json:"secondsBelow95Percent"`
	Dark     float64 `json:"secondsBelow80Percent"`
	Away     float64 `json:"useOfSharesWhileAway,omitempty"`
	Messages float64 `json:"messagesPerSecondAndPod,omitempty"`
	// Processors is what the leader's decisions take per 1000 pods, without the streams.
	Processors float64 `json:"leaderProcessorsPer1000Pods,omitempty"`
	// MostOfBurst is the largest part of the burst in use in any interval: above 1 the law is broken.
	MostOfBurst float64 `json:"mostOfBurst"`
	Broken      string  `json:"broken,omitempty"`

	BackAfterMilliseconds float64 `json:"backAfterMilliseconds,omitempty"`

	goals string
}

type report struct {
	Seed         uint64  `json:"seed"`
	Rows         []row   `json:"rows"`
	Peers        []row   `json:"peers"`
	Hourly       []int64 `json:"fivePerHourAdmittedAfterEachHour"`
	HourlyBroken string  `json:"fivePerHourBroken,omitempty"`
}

func newRow(s sim.Scenario, m sim.Result) row {
	w := row{
		Scenario: s.Name, Limit: fmt.Sprintf("%d/s, burst %d", s.Limit.Requests, s.Limit.Burst),
		Mean: m.Mean, Worst: m.Worst, Short: m.Short, Dark: time.Duration(m.Dark).Seconds(), Away: m.Away,
		Messages: m.Messages, Processors: m.Leader, MostOfBurst: m.Most, Broken: m.Broken,
	}
	w.goals = fmt.Sprintf("%.1f / %.0f", 100*s.Mean, 100*s.Worst)
	if s.Worst == 0 {
		w.goals = fmt.Sprintf("%.1f", 100*s.Mean)
	}
	if s.Gone > 0 {
		w.goals = "95 of the shares"
	}
	return w
}

func (r *report) page() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How a limit that is lent is used

Written by `+"`make bench-quota`"+` (seed %d, %s, %s): the leader and the pods as they are shipped, in virtual time. One-way
delay 2 ms, requests held for 9 ms at most, D = 1 s, clocks off by up to 0.1 %%; twice the limit is offered where nothing else is
said. Use is what was admitted of the limit (of what was offered, for 0.8). The worst second is the worst in a hundred.
`, r.Seed, runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "\n| scenario | limit | use, mean %% | worst second %% | goals | seconds below 95 %% | below 80 %% for | messages/s/pod | leader, processors per 1,000 pods | beyond the law |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range r.Rows {
		mean := fmt.Sprintf("%.2f", 100*w.Mean)
		if w.Away > 0 {
			mean += fmt.Sprintf(" (%.1f of the shares while away)", 100*w.Away)
		}
		beyond := "0"
		if w.Broken != "" {
			beyond = w.Broken
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %s | %d | %.1f s | %.1f | %.2f | %s |\n", w.Scenario, w.Limit, mean, 100*w.Worst, w.goals, w.Short, w.Dark, w.Messages, w.Processors, beyond)
	}
	for _, w := range r.Rows {
		if w.BackAfterMilliseconds > 0 {
			fmt.Fprintf(&b, "\nAfter a jump 95 %% of %s are admitted again within %.0f ms (goal 25 ms; steps of 10 ms).\n", w.Limit, w.BackAfterMilliseconds)
		}
	}
	fmt.Fprintf(&b, "\n5 per hour, burst 5, over 50 pods, the operator restarted each hour: admitted up to a minute after each hour: %v (one\nbucket: 10, 15, 20, ...).\n", r.Hourly)
	fmt.Fprintf(&b, `
Messages of both directions are counted; what is sent at one time goes in one. The goals are 5 at balanced load where there are
20 tokens of the burst for each pod, and 100 at most. The leader's share of a processor is what its decisions take on the
machine that wrote this page; encoding and sending a message costs more than deciding it: see `+"`BenchmarkAnswerToAClaim` in `test/exchange`"+`.

## Other ways, in the same world

Models, with assumptions that are kind to them: every pod learns of a change of N after 1.5 s; leases are renewed each second
(Doorman: 16 s); batches are reported each 100 ms and arrive at once.

| scenario | limit | way | use, mean %% | worst second %% | most of the burst in use %% |
|---|---|---|---|---|---|
`)
	for _, w := range r.Peers {
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %.1f | %.0f |\n", w.Scenario, w.Limit, w.Peer, 100*w.Mean, 100*w.Worst, 100*w.MostOfBurst)
	}
	return b.Bytes()
}
