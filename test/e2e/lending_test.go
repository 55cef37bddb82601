//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// act is one course of the demand, measured after it has begun for a while.
type act struct {
	Name string `json:"name"`
	// Offered and Admitted per second, and the use of what could be admitted.
	Offered  float64 `json:"offeredPerSecond"`
	Admitted float64 `json:"admittedPerSecond"`
	Use      float64 `json:"use"`

	clients []load.Client
	pods    []corev1.Pod // that get the load; empty = the Service
	while   func()       // happens meanwhile
	least   float64      // of use; the machine runs everything on two processors
}

// twelvePodsAdmitWhatOneWould runs one limit over twelve pods through skewed, pinned and jumping demand, scale events and an
// orderly restart of the operator, at up to 2,000 requests per second. The offered rate, the use, the oracle's verdict and all records are kept.
func twelvePodsAdmitWhatOneWould(t *testing.T) {
	s := newSpace(t)
	const rate = 240
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(8)), "deployment")
	policy := s.policy("all", app.Name, lent(perSecond("all", rate, rate/4)))
	s.apply(policy)
	s.enforced(policy, 8)
	s.settled(app, 8)
	s.scale(app, 12)
	s.enforced(policy, 12)
	pods := s.settled(app, 12)

	// One client has one request under way, and those that are denied are held for some milliseconds: many are needed.
	clients := func(n int, each float64, how load.Connections) (out []load.Client) {
		for range n {
			out = append(out, load.Client{Rate: each, Connections: how})
		}
		return out
	}
	acts := []*act{
		{Name: "all on one pod of twelve", clients: clients(40, 50, load.Pinned), pods: pods[:1], least: 0.7},
		{Name: "jumped to another pod", clients: clients(40, 50, load.Pinned), pods: pods[7:8], least: 0.7},
		{Name: "skewed: half on one pod, the rest on four", clients: clients(20, 50, load.Pinned), pods: pods[2:7], least: 0.7},
		{Name: "spread by the Service", clients: clients(40, 50, load.Renewed), least: 0.7},
		{Name: "scaled from 12 to 8 meanwhile", clients: clients(40, 50, load.Renewed), least: 0.6, while: func() {
			s.scale(app, 8)
			s.settled(app, 8)
		}},
		{Name: "the operator restarts in order meanwhile", clients: clients(40, 50, load.Renewed), least: 0.5, while: func() {
			epoch, leader := s.leader()
			s.must(suite.Delete(s.ctx, leader), "leader")
			s.nextLeader(epoch)
			time.Sleep(2 * time.Second)
		}},
		{Name: "after the restart, all on one pod", clients: clients(40, 50, load.Pinned), least: 0.7},
	}
	var answered int64
	for i, a := range acts {
		if i == len(acts)-1 {
			a.pods = s.settled(app, 8)[3:4]
		}
		answered += s.play(a, rate)
	}
	report := s.judge()
	if int64(report.Admitted) < answered {
		s.Errorf("clients saw %d requests admitted, the pods have recorded %d", answered, report.Admitted)
	}
	out, err := json.MarshalIndent(acts, "", "  ")
	s.must(err, "acts")
	s.must(os.WriteFile(filepath.Join(s.kept, "use.json"), out, 0o644), "acts")
	s.operatorReady()
}

// play offers the demand of an act and returns how many requests clients saw admitted.
func (s *space) play(a *act, rate float64) (answered int64) {
	s.Helper()
	var runs []*load.Run
	if len(a.pods) == 0 {
		address, err := suite.Address(s.ctx, &testbed.App{Name: "app", Namespace: s.name})
		s.must(err, "load")
		run, err := load.Start(s.ctx, address, a.clients...)
		s.must(err, "load")
		runs = append(runs, run)
	}
	for i := range a.pods {
		clients := a.clients
		if i > 0 {
			clients = a.clients[:len(a.clients)/(len(a.pods)-1)] // together as much as the first
		}
		run, err := load.Start(s.ctx, fmt.Sprintf("http://%s:%d", a.pods[i].Status.PodIP, quotav1.PortInbound), clients...)
		s.must(err, "load")
		runs = append(runs, run)
	}
	time.Sleep(time.Second)
	from := record.Now()
	if a.while != nil {
		a.while()
	}
	time.Sleep(3 * time.Second)
	until := record.Now()
	for _, r := range runs {
		s.none(r.Stop())
		answered += r.Count().Admitted
	}
	var admitted, offered uint64
	for _, f := range s.records() {
		for _, d := range f.Decisions {
			if d.Time >= from && d.Time < until {
				offered += d.Cost
				if d.Admitted {
					admitted += d.Cost
				}
			}
		}
	}
	seconds := time.Duration(until - from).Seconds()
	a.Offered, a.Admitted = float64(offered)/seconds, float64(admitted)/seconds
	a.Use = a.Admitted / min(rate, a.Offered)
	s.Logf("%s: offered %.0f/s, admitted %.0f/s of %.0f/s: use %.1f %%", a.Name, a.Offered, a.Admitted, rate, 100*a.Use)
	if a.Use < a.least {
		s.Errorf("%s: use is %.1f %%, not %.0f %%", a.Name, 100*a.Use, 100*a.least)
	}
	return answered
}

// nextLeader waits for a leader of another epoch.
func (s *space) nextLeader(epoch string) {
	s.Helper()
	for give := time.Now().Add(rollout); time.Now().Before(give); time.Sleep(50 * time.Millisecond) {
		if now, _ := s.leader(); now != epoch && strings.TrimSpace(now) != "" {
			return
		}
	}
	s.Fatal("nobody leads after a restart")
}
