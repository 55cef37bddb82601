// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	pushes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "headgate_pushes_total",
		Help: "Assignments sent to sidecars.",
	})
	pushAck = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "headgate_push_ack_seconds",
		Help:    "Time from deciding an assignment until the sidecar has acknowledged it.",
		Buckets: []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 5}, // two round trips are a few milliseconds
	})
	streams = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "headgate_streams",
		Help: "Sidecars connected to this replica as the leader.",
	})
	refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_streams_refused_total",
		Help: "Streams refused, by reason.",
	}, []string{"reason"})
)

// RegisterMetrics adds the package's metrics to the operator's registry.
func RegisterMetrics() { metrics.Registry.MustRegister(pushes, pushAck, streams, refused) }

func observeAck(d time.Duration) { pushAck.Observe(d.Seconds()) }
