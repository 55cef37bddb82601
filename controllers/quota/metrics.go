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
	grants = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "headgate_grants_total",
		Help: "Messages to sidecars about limits that are lent: loans, shares and their numbers.",
	})
	accountsRefused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "headgate_mint_accounts_refused_total",
		Help: "Claims of keys for which there was no room: they live on their pod's share alone.",
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

var (
	poolDesc = prometheus.NewDesc("headgate_mint_pool_tokens",
		"Tokens of a limit that could be lent now, of all keys that borrow.", []string{"policy", "limit"}, nil)
	lentDesc = prometheus.NewDesc("headgate_mint_lent_tokens",
		"Tokens of a limit that are lent, and neither reported as spent nor returned.", []string{"policy", "limit"}, nil)
	accountsDesc = prometheus.NewDesc("headgate_mint_accounts",
		"Accounts of a limit at the mint: the keys that borrow, or one.", []string{"policy", "limit"}, nil)
	podsDesc = prometheus.NewDesc("headgate_pods",
		"Processes that share a limit.", []string{"policy", "limit"}, nil)
	reservedDesc = prometheus.NewDesc("headgate_reserved_pods",
		"Pods that hold a part of a policy's limits and cannot be reached.", []string{"policy"}, nil)
)

// Describe implements prometheus.Collector.
func (h *Home) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolDesc, lentDesc, accountsDesc, podsDesc, reservedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Only the leader knows anything.
func (h *Home) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading {
		return
	}
	gauge := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	now := h.opts.Now()
	for _, p := range h.policies {
		for _, a := range p.accounts {
			n := int64(0)
			switch {
			case a.ledger != nil:
				n = int64(a.ledger.N())
			case a.lending != nil:
				n = int64(a.lending.fleet.N())
				lent, pool := a.lending.lent(now)
				gauge(poolDesc, pool, p.key.String(), a.limit.Name)
				gauge(lentDesc, lent, p.key.String(), a.limit.Name)
				gauge(accountsDesc, int64(len(a.lending.mints)), p.key.String(), a.limit.Name)
			}
			gauge(podsDesc, n, p.key.String(), a.limit.Name)
		}
		gauge(reservedDesc, h.reserved(p), p.key.String())
	}
}

// reserved counts the pods that hold a part of the policy's limits and cannot be reached.
func (h *Home) reserved(p *policy) (n int64) {
	for uid, pod := range h.pods {
		if pod.covered(p) && h.holds(pod, p, uid) {
			n++
		}
	}
	return n
}

// RegisterMetrics adds the package's metrics, and the home's, to the operator's registry.
func RegisterMetrics(h *Home) {
	metrics.Registry.MustRegister(h, pushes, pushAck, grants, accountsRefused, streams, refused)
}

func observeAck(d time.Duration) { pushAck.Observe(d.Seconds()) }
