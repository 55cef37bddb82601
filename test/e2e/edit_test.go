//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/oracle"
	"github.com/headgate/headgate/test/testbed"
)

// quickly is how soon pods that are there enforce an edit. There is nothing to start, only to tell.
const quickly = 3*time.Second + margin

func editedNumbersHold(t *testing.T) {
	s := newSpace(t)
	app, policy := s.three()
	run := s.load(app, load.Client{Rate: 75, Connections: load.New}, load.Client{Rate: 75, Connections: load.Renewed})
	s.until(run, 300)
	for _, numbers := range []struct{ rate, burst int64 }{{120, 120}, {30, 10}} {
		before := policy.DeepCopy()
		policy.Spec.Limits = []v1alpha1.Limit{perSecond("all", numbers.rate, numbers.burst)}
		s.must(suite.Patch(s.ctx, policy, client.MergeFrom(before)), "edit")
		s.must(testbed.Declare(s.limits, policy), "edit") // across an edit both maxima hold
		s.enforcedWithin(quickly, policy, 3)
		enforced := record.Now()
		s.until(run, 300)
		// From here on the new numbers hold alone.
		alone := map[string]oracle.Limit{}
		s.must(testbed.Declare(alone, policy), "edit")
		s.verdict("oracle-after-edit.txt", since(s.records(), enforced), alone)
	}
	s.none(run.Stop())
	s.judge(run)
}

// since leaves out what was decided before a time.
func since(files []*record.File, at int64) []*record.File {
	var out []*record.File
	for _, f := range files {
		late := *f
		late.Decisions = nil
		for _, d := range f.Decisions {
			if d.Time >= at {
				late.Decisions = append(late.Decisions, d)
			}
		}
		out = append(out, &late)
	}
	return out
}

func recreatedPolicyGivesNoSecondBurst(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(2)), "deployment")
	limit := perSecond("all", 10, 100) // ten seconds to earn a second burst
	policy := s.policy("all", app.Name, limit)
	s.apply(policy)
	s.ready(app, 2)
	s.enforced(policy, 2)
	s.settled(app, 2)
	run := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(run, 400) // the burst is used up
	if c := run.Count(); c.Denied == 0 || c.Admitted < 80 {
		s.Fatalf("the first burst is not used up: %+v", c)
	}
	old := policy.UID
	s.must(suite.Delete(s.ctx, policy), "delete")
	policy = s.policy("all", app.Name, limit)
	s.must(suite.Create(s.ctx, policy), "create again")
	s.enforcedWithin(soon, policy, 2)
	s.until(run, 400)
	s.none(run.Stop())

	// Old and new are one account to whoever pays for it.
	files := s.records()
	for _, f := range files {
		for i := range f.Decisions {
			f.Decisions[i].Limit = strings.Replace(f.Decisions[i].Limit, string(policy.UID), string(old), 1)
		}
	}
	report := s.verdict("oracle.txt", files, s.limits)
	if report.Tightest < 0.5 {
		s.Errorf("only %.0f %% of what the law allows was ever used: the case proves nothing", 100*report.Tightest)
	}
}

// The messages are held by a table test beside the API; here it matters that an installed cluster refuses, and keeps what
// was enforced.
func policyThatCannotWorkIsRefused(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(1)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 20, 20))
	s.apply(policy)
	s.enforced(policy, 1)
	for name, tc := range map[string]struct{ patch, want string }{
		"a rate of nothing":             {`{"spec":{"limits":[{"name":"all","rate":{"requests":0,"per":"1s"}}]}}`, "requests must be from 1"},
		"a burst below one":             {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1s"},"burst":0}]}}`, "burst must be from 1"},
		"a period in days":              {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1d"}}]}}`, "write 24h for a day"},
		"a target that has no pods":     {`{"spec":{"targetRefs":[{"group":"apps","kind":"Service","name":"app"}]}}`, "name the workload behind"},
		"no limits":                     {`{"spec":{"limits":[]}}`, "at least 1"},
		"a strategy that nobody knows":  {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1s"},"strategy":"Magic"}]}}`, "Unsupported value"},
		"a when that does not compile":  {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1s"},"when":"request.method = 'GET'"}]}}`, "spec.limits[0].when"},
		"a cost that is never granted":  {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1s"},"cost":{"tokens":6}}]}}`, "6 is more than burst 5"},
		"a path that can never be seen": {`{"spec":{"limits":[{"name":"all","rate":{"requests":5,"per":"1s"},"match":[{"path":{"value":"v1"}}]}]}}`, "absolute path"},
	} {
		err := suite.Patch(s.ctx, policy.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tc.patch)))
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want) {
			s.Errorf("%s: %v, want a refusal that says %q", name, err, tc.want)
		}
	}
	s.enforced(policy, 1)
	waitFor(s, soon, "the policy to be as it was", func(ctx context.Context) error {
		var now v1alpha1.RateLimitPolicy
		if err := suite.Get(ctx, client.ObjectKeyFromObject(policy), &now); err != nil {
			return err
		}
		return testbed.Enforced(&now, 1)
	})
}
