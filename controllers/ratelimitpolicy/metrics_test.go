// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// policies is a cache that knows some.
type policies []v1alpha1.RateLimitPolicy

func (p policies) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (p policies) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.RateLimitPolicyList).Items = p
	return nil
}

func TestAPolicyThatIsNotEnforcedIsSeenWithoutKubectl(t *testing.T) {
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status}
	}
	all := policies{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}, Status: v1alpha1.RateLimitPolicyStatus{Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue), condition(v1alpha1.ConditionProgrammed, metav1.ConditionFalse),
		}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "checkout"}, Status: v1alpha1.RateLimitPolicyStatus{Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionProgrammed, metav1.ConditionUnknown),
		}}},
	}
	leading := true
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&Conditions{Reader: all, Leading: func() bool { return leading }})
	want := `# HELP headgate_policy_condition 1 while a condition of a policy is True, 0 while it is False or Unknown.
# TYPE headgate_policy_condition gauge
headgate_policy_condition{condition="Accepted",namespace="shop",policy="checkout"} 1
headgate_policy_condition{condition="Programmed",namespace="bank",policy="checkout"} 0
headgate_policy_condition{condition="Programmed",namespace="shop",policy="checkout"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	leading = false
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("a replica that does not lead tells %d conditions, %v: each would be told twice", n, err)
	}
}
