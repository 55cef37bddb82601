// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/test/oracle"
)

// Enforced returns nil when the policy's own generation is enforced by want pods, all there are; want < 0 = however many.
func Enforced(p *v1alpha1.RateLimitPolicy, want int) error {
	for _, kind := range []v1alpha1.ConditionType{v1alpha1.ConditionAccepted, v1alpha1.ConditionInjected, v1alpha1.ConditionProgrammed} {
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		switch {
		case c == nil:
			return fmt.Errorf("condition %s is not set", kind)
		case c.ObservedGeneration != p.Generation:
			return fmt.Errorf("condition %s is of generation %d, not %d", kind, c.ObservedGeneration, p.Generation)
		case c.Status != metav1.ConditionTrue:
			return fmt.Errorf("condition %s is %s (%s): %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	if pods := fmt.Sprintf("%d/%d", want, want); want >= 0 && p.Status.Summary.Pods != pods {
		return fmt.Errorf("pods are %s, not %s", p.Status.Summary.Pods, pods)
	}
	return nil
}

// WaitEnforced waits until the policy is enforced by want pods, and returns it.
func (c *Cluster) WaitEnforced(ctx context.Context, timeout time.Duration, key client.ObjectKey, want int) (*v1alpha1.RateLimitPolicy, error) {
	policy := &v1alpha1.RateLimitPolicy{}
	err := Wait(ctx, timeout, "policy "+key.Name+" to be enforced", func(ctx context.Context) error {
		if err := c.Get(ctx, key, policy); err != nil {
			return err
		}
		return Enforced(policy, want)
	})
	return policy, err
}

// Declare adds a policy's limits to what the oracle judges by. Where a limit is there already, the larger numbers count:
// across an edit both maxima hold.
func Declare(limits map[string]oracle.Limit, p *v1alpha1.RateLimitPolicy) error {
	if p.UID == "" {
		return errors.New("the policy has no UID: read it from the cluster first")
	}
	compiled, err := compile.Policy(p, "")
	if err != nil {
		return fmt.Errorf("policy %s: %w", p.Name, err)
	}
	for _, l := range compiled.Limits {
		want := oracle.Limit{Name: l.Name, Requests: l.Rate.Requests, Period: time.Duration(l.Rate.PeriodNanoseconds), Burst: l.Burst}
		if have, ok := limits[l.Id]; ok {
			if have.Period != want.Period {
				return fmt.Errorf("limit %s: periods %s and %s cannot be compared", l.Name, have.Period, want.Period)
			}
			want.Requests, want.Burst = max(want.Requests, have.Requests), max(want.Burst, have.Burst)
		}
		limits[l.Id] = want
	}
	return nil
}
