// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

var conditionDesc = prometheus.NewDesc("headgate_policy_condition",
	"1 while a condition of a policy is True, 0 while it is False or Unknown.", []string{"namespace", "policy", "condition"}, nil)

// Conditions shows the conditions of all policies as metrics. Only the leader does, so that each is told once.
type Conditions struct {
	// Reader is a cache: it is asked at every scrape.
	Reader  client.Reader
	Leading func() bool
}

// collectTimeout is far above what a cache needs, and below what a scrape may take.
const collectTimeout = 5 * time.Second

// Describe implements prometheus.Collector.
func (c *Conditions) Describe(ch chan<- *prometheus.Desc) { ch <- conditionDesc }

// Collect implements prometheus.Collector.
func (c *Conditions) Collect(ch chan<- prometheus.Metric) {
	if !c.Leading() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var policies v1alpha1.RateLimitPolicyList
	if err := c.Reader.List(ctx, &policies); err != nil {
		ch <- prometheus.NewInvalidMetric(conditionDesc, err)
		return
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		for _, condition := range p.Status.Conditions {
			v := 0.0
			if condition.Status == metav1.ConditionTrue {
				v = 1
			}
			ch <- prometheus.MustNewConstMetric(conditionDesc, prometheus.GaugeValue, v, p.Namespace, p.Name, condition.Type)
		}
	}
}
