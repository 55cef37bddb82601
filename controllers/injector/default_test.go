// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
)

func TestWhatAPolicyLeavesOpenIsSaidByTheInstallation(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  v1alpha1.Injection
		install injector.Default
		mode    v1alpha1.InjectionMode
		rollout v1alpha1.RolloutMode
	}{
		"nobody says anything": {mode: v1alpha1.Auto, rollout: v1alpha1.Automatic},
		"the installation says both": {
			install: injector.Default{Mode: v1alpha1.None, Rollout: v1alpha1.Manual},
			mode:    v1alpha1.None, rollout: v1alpha1.Manual,
		},
		"a policy says otherwise": {
			policy:  v1alpha1.Injection{Mode: v1alpha1.Auto, Rollout: v1alpha1.Automatic},
			install: injector.Default{Mode: v1alpha1.None, Rollout: v1alpha1.Manual},
			mode:    v1alpha1.Auto, rollout: v1alpha1.Automatic,
		},
		"a policy says one thing": {
			policy:  v1alpha1.Injection{Mode: v1alpha1.NamedPort},
			install: injector.Default{Mode: v1alpha1.None, Rollout: v1alpha1.Manual},
			mode:    v1alpha1.NamedPort, rollout: v1alpha1.Manual,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RateLimitPolicy{Spec: v1alpha1.RateLimitPolicySpec{Injection: tc.policy}}
			if got := tc.install.Said(p); got.Mode != tc.mode || got.Rollout != tc.rollout {
				t.Errorf("it is %s and %s, not %s and %s", got.Mode, got.Rollout, tc.mode, tc.rollout)
			}
			if tc.mode != v1alpha1.None {
				return
			}
			plan, err := injector.PlanOf([]*v1alpha1.RateLimitPolicy{p}, &corev1.Pod{}, injector.Surroundings{Default: tc.install})
			if err != nil || plan.Mode != v1alpha1.None || plan.Rollout != tc.rollout {
				t.Errorf("planned %+v, %v", plan, err)
			}
		})
	}
}
