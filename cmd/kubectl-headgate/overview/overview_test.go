// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// policy is one of generation 3 with a condition that is not as it should be; empty = all are.
func policy(name string, kind v1alpha1.ConditionType, reason v1alpha1.Reason, status metav1.ConditionStatus, message string) fleet.Policy {
	p := fleet.Policy{}
	p.Namespace, p.Name, p.Generation = "shop", name, 3
	p.Spec.TargetRefs = []v1alpha1.TargetRef{{Kind: "Deployment", Name: name}}
	p.Status.Summary = v1alpha1.Summary{Pods: "2/3", Share: "50/s"}
	p.Status.Limits = []v1alpha1.LimitStatus{{Name: "all", Contract: "at most 200 at once, and 200 per 1s", Share: "50/s", Pods: new(int32(4))}}
	for _, k := range order {
		c := metav1.Condition{Type: string(k), Status: metav1.ConditionTrue, Reason: string(k), ObservedGeneration: 3}
		if k == kind {
			c.Status, c.Reason, c.Message = status, string(reason), message
		}
		p.Status.Conditions = append(p.Status.Conditions, c)
	}
	return p
}

func TestEveryStateHasAWordAndWhatToDo(t *testing.T) {
	no := metav1.ConditionFalse
	for name, tc := range map[string]struct {
		policy fleet.Policy
		state  string
		says   bool
	}{
		"all is well":                    {policy("a", "", "", "", ""), "Enforced", false},
		"a policy that is refused":       {policy("a", v1alpha1.ConditionAccepted, v1alpha1.ReasonInvalid, no, "m"), "Refused", true},
		"no target":                      {policy("a", v1alpha1.ConditionAccepted, v1alpha1.ReasonTargetNotFound, no, "m"), "No target", true},
		"pods without the sidecar":       {policy("a", v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar, no, "m"), "Partly", true},
		"a way around":                   {policy("a", v1alpha1.ConditionInjected, v1alpha1.ReasonBypassable, no, "m"), "Partly", true},
		"pods that wait":                 {policy("a", v1alpha1.ConditionProgrammed, v1alpha1.ReasonReconciling, no, "m"), "Waiting", true},
		"a reserved share":               {policy("a", v1alpha1.ConditionQuotaHealthy, v1alpha1.ReasonReserved, no, "m"), "Reserved", true},
		"a burst that is too small":      {policy("a", v1alpha1.ConditionQuotaHealthy, v1alpha1.ReasonDegraded, no, "m"), "Too small", true},
		"older sidecars are no reason":   {policy("a", v1alpha1.ConditionInjected, v1alpha1.ReasonSidecarOutdated, metav1.ConditionTrue, "m"), "Enforced", true},
		"a conflict is no reason":        {policy("a", v1alpha1.ConditionAccepted, v1alpha1.ReasonConflicted, metav1.ConditionTrue, "m"), "Enforced", true},
		"a reason of a later release":    {policy("a", v1alpha1.ConditionQuotaHealthy, "Eclipse", no, "m"), "Waiting", true},
		"a generation that nobody knows": {func() fleet.Policy { p := policy("a", "", "", "", ""); p.Generation = 4; return p }(), "Unseen", true},
		"no operator at all": {func() fleet.Policy {
			p := policy("a", "", "", "", "")
			p.Status = v1alpha1.RateLimitPolicyStatus{}
			return p
		}(), "Unseen", true},
		"shadow": {func() fleet.Policy { p := policy("a", "", "", "", ""); p.Spec.Mode = v1alpha1.ModeShadow; return p }(), "Shadow", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(&tc.policy, now)
			if got.State != tc.state || (len(got.Troubles) > 0) != tc.says {
				t.Errorf("%q with %+v, want %q and troubles %v", got.State, got.Troubles, tc.state, tc.says)
			}
			for _, w := range got.Troubles {
				if w.What == "" || w.Do == "" {
					t.Errorf("%+v does not say what to do", w)
				}
			}
		})
	}
}

// carrying is a pod that carries the sidecar.
func carrying(name string, answer fleet.Answer) *fleet.Pod {
	p := &fleet.Pod{Answer: answer}
	p.Namespace, p.Name, p.Spec.NodeName = "shop", name, "node1"
	p.Spec.InitContainers = []corev1.Container{{Name: quotav1.ContainerName}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func says(connected bool, generation int64, l admission.LimitState) fleet.Answer {
	return fleet.Answer{Outcome: fleet.Answered, State: &admin.State{
		Time: now, Version: "v0.3.0", Quota: quota.Status{Connected: connected, Since: now.Add(-90 * time.Second), LastError: "i/o timeout"},
		State: admission.State{Policies: []admission.PolicyState{{Namespace: "shop", Name: "checkout", Generation: generation, Limits: []admission.LimitState{l}}}},
	}}
}

func TestTheTablesSayHowEachPolicyAndPodStands(t *testing.T) {
	checkout := policy("checkout", v1alpha1.ConditionInjected, v1alpha1.ReasonPodsWithoutSidecar, metav1.ConditionFalse,
		"1 of 7 pods lack the sidecar and are not limited (bare): kubectl rollout restart deployment/checkout -n shop.")
	rate := admission.LimitState{Name: "all", RatePerSecond: 50}
	bare := carrying("bare", fleet.Answer{})
	bare.Spec.InitContainers = nil
	checkout.Pods = []*fleet.Pod{
		carrying("a", says(true, 3, rate)), carrying("b", says(false, 2, rate)), carrying("c", fleet.Answer{Outcome: fleet.Silent}), bare,
		carrying("d", fleet.Answer{Outcome: fleet.Closed}), carrying("e", fleet.Answer{Outcome: fleet.Unreachable}), carrying("f", says(true, 3, admission.LimitState{InFlight: new(uint64), ShareBurst: 2.5})),
	}
	rows := []Policy{Of(&checkout, now), Of(new(policy("search", "", "", "", "")), now)}
	var b bytes.Buffer
	for _, wide := range []bool{false, true} {
		if err := Fprint(&b, rows, !wide, wide); err != nil {
			t.Fatal(err)
		}
		b.WriteString("=====\n")
	}
	const path = "testdata/tables.txt"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it:\n%s", path, diff)
	}
}
