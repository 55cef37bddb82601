// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

func TestWhatToDoAboutABarePodFollowsTheInstallation(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		do     string
	}{
		"the operator restarts":            {func(*Facts) {}, "the operator replaces them"},
		"restarts are people's by default": {func(f *Facts) { f.Default.Rollout = v1alpha1.Manual }, "rollout: Manual"},
		"a policy says otherwise": {func(f *Facts) {
			f.Default.Rollout = v1alpha1.Manual
			f.Policies[0].Spec.Injection.Rollout = v1alpha1.Automatic
		}, "the operator replaces them"},
		"the operator may not":               {func(f *Facts) { f.NoRollouts = true }, "rollout.enabled: false"},
		"the way in does not fit by default": {func(f *Facts) { f.Default.Mode = v1alpha1.NamedPort; barePod(f).Spec.Containers[0].Ports[0].Name = "" }, "they cannot have it"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			barePod(f).Spec.InitContainers = nil
			tc.change(f)
			for _, x := range Diagnose(f).Findings {
				if x.Code == PodWithoutSidecar && strings.Contains(x.Do, tc.do) {
					return
				}
			}
			t.Errorf("nothing says %q: %+v", tc.do, Diagnose(f).Findings)
		})
	}
}

func barePod(f *Facts) *fleet.Pod { return f.Policies[0].Pods[0] }
