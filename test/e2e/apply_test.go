//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
)

func policyReachesARunningApp(t *testing.T) {
	s := newSpace(t)
	app := s.running("app", 2)
	policy := s.policy("all", app.Name, perSecond("all", 40, 40))
	s.apply(policy)
	s.enforced(policy, 2)
	s.settled(app, 2)

	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 700)
	answers := run.Stop()
	s.none(answers)
	for i := range answers {
		if a := &answers[i]; a.Denied() && a.RetryAfter != 1 {
			s.Fatalf("denied with Retry-After %d: a token comes every 1/20 s in each of two pods, so 1 is right", a.RetryAfter)
		}
	}
	if c := run.Count(); c.Denied == 0 {
		s.Errorf("nothing was denied: %+v", c)
	}
	s.judge(run)
}

// A client that waits for as long as the denial says is admitted by the same pod; and it is not told to wait for longer
// than the pod needs to earn a token.
func denialSaysWhenToComeBack(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	slow := v1alpha1.Limit{Name: "slow", Rate: v1alpha1.Rate{Requests: 20, Per: "1m"}, Burst: new(int64(2))} // a token every 3 s
	policy := s.policy("slow", app.Name, slow)
	s.apply(policy)
	s.enforced(policy, 1)
	s.settled(app, 1)

	judged := 0
	for range 10 {
		run := s.load(app, load.Client{Rate: 20, Connections: load.Pinned})
		s.until(run, 10)
		answers := run.Stop()
		last := answers[len(answers)-1]
		if last.Admitted() {
			continue // a token came just then
		}
		if last.RetryAfter < 1 || last.RetryAfter > 3 {
			s.Fatalf("Retry-After is %d, a token comes every 3 s: %s", last.RetryAfter, &last)
		}
		time.Sleep(time.Until(last.End.Add(time.Duration(last.RetryAfter) * time.Second)))
		again := s.load(app, load.Client{Rate: 20, Connections: load.Pinned})
		s.until(again, 1)
		if first := again.Stop()[0]; !first.Admitted() {
			s.Errorf("a client that waited for Retry-After was not admitted: %s", &first)
		}
		if judged++; judged == 2 {
			break
		}
	}
	if judged == 0 {
		s.Error("nothing was ever denied")
	}
	s.judge()
}
