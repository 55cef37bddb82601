// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
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
		Help: "Streams of sidecars that were refused or ended, by reason: unauthenticated, review (the API server could not be asked), hello (its first message was none), rate (too many messages).",
	}, []string{"reason"})
)

// Reasons for refusing a stream. All are counted from the start, so that the first one is seen as an increase.
const (
	refusedUnauthenticated = "unauthenticated"
	refusedReview          = "review"
	refusedHello           = "hello"
	refusedRate            = "rate"
)

func init() {
	for _, reason := range []string{refusedUnauthenticated, refusedReview, refusedHello, refusedRate} {
		refused.WithLabelValues(reason)
	}
}

var (
	ofLimit  = []string{"namespace", "policy", "limit"}
	ofPolicy = []string{"namespace", "policy"}

	leadingDesc = prometheus.NewDesc("headgate_leading",
		"1 while this replica leads and is certain to; all figures of policies come from the leader alone.", nil, nil)
	poolDesc = prometheus.NewDesc("headgate_mint_pool_tokens",
		"Tokens of a limit that could be lent now, of all keys that borrow.", ofLimit, nil)
	lentDesc = prometheus.NewDesc("headgate_mint_lent_tokens",
		"Tokens of a limit that are lent, and neither reported as spent nor returned.", ofLimit, nil)
	accountsDesc = prometheus.NewDesc("headgate_mint_accounts",
		"Accounts of a limit at the mint: the keys that borrow, or one.", ofLimit, nil)
	podsDesc = prometheus.NewDesc("headgate_pods",
		"Processes that share a limit.", ofLimit, nil)
	reservedDesc = prometheus.NewDesc("headgate_reserved_pods",
		"Pods that hold a part of a policy's limits and cannot be reached.", ofPolicy, nil)
	rateDesc = prometheus.NewDesc("headgate_limit_tokens_per_second",
		"Rate that a policy declares for a limit: for all pods together (per=\"limit\"), for each key or for each pod. Limits of concurrency have none.",
		[]string{"namespace", "policy", "limit", "per"}, nil)
	burstDesc = prometheus.NewDesc("headgate_limit_burst_tokens",
		"Burst that a policy declares for a limit; for a limit of concurrency, the most requests under way.", ofLimit, nil)
	offeredDesc = prometheus.NewDesc("headgate_offered_requests_per_second",
		"Requests that the pods of a workload are asked to admit by a limit, its variants together: those admitted, denied and made to wait alike, over the last 15 seconds.",
		[]string{"namespace", "policy", "limit", "workload_kind", "workload"}, nil)
)

// Collectors are the package's metrics, and the home's.
func Collectors(h *Home) []prometheus.Collector {
	return []prometheus.Collector{h, pushes, pushAck, grants, accountsRefused, streams, refused}
}

// Describe implements prometheus.Collector.
func (h *Home) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		leadingDesc, poolDesc, lentDesc, accountsDesc, podsDesc, reservedDesc, rateDesc, burstDesc, offeredDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Only the leader knows anything.
func (h *Home) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if !h.leading || !h.sure() {
		gauge(leadingDesc, 0)
		return
	}
	gauge(leadingDesc, 1)
	now := h.opts.Now()
	for _, p := range h.policies {
		for _, a := range p.accounts {
			a.collect(gauge, now, p.key.Namespace, p.key.Name)
		}
		gauge(reservedDesc, float64(h.reserved(p)), p.key.Namespace, p.key.Name)
		offered, _ := h.offered(p, now)
		for o, v := range offered {
			gauge(offeredDesc, v, p.key.Namespace, p.key.Name, o.limit, o.kind, o.name)
		}
	}
}

func (a *account) collect(gauge func(*prometheus.Desc, float64, ...string), now int64, namespace, policy string) {
	limit := labelOf(a.limit)
	n := 0
	switch {
	case a.ledger != nil:
		n = a.ledger.N()
	case a.lending != nil:
		n = a.lending.fleet.N()
		lent, pool := a.lending.lent(now)
		gauge(poolDesc, float64(pool), namespace, policy, limit)
		gauge(lentDesc, float64(lent), namespace, policy, limit)
		gauge(accountsDesc, float64(len(a.lending.mints)), namespace, policy, limit)
	}
	gauge(podsDesc, float64(n), namespace, policy, limit)
	gauge(burstDesc, float64(a.limit.GetBurst()), namespace, policy, limit)
	if a.limit.GetAlgorithm() == quotav1.Algorithm_CONCURRENCY {
		return
	}
	per := "limit"
	switch {
	case len(a.limit.GetKey()) > 0:
		per = "key"
	case a.limit.GetScope() == quotav1.Scope_PER_POD:
		per = "pod"
	}
	rate := a.limit.GetRate()
	gauge(rateDesc, float64(rate.GetRequests())/time.Duration(rate.GetPeriodNanoseconds()).Seconds(), namespace, policy, limit, per)
}

// labelOf names a limit in metrics as the sidecar does: its name, or name/variant.
func labelOf(l *quotav1.Limit) string {
	if v := l.GetVariant().GetName(); v != "" {
		return l.GetName() + "/" + v
	}
	return l.GetName()
}

// reserved counts the pods that hold a part of the policy's limits and cannot be reached.
func (h *Home) reserved(p *policy) (n int) {
	for uid, pod := range h.pods {
		if pod.covered(p) && h.holds(pod, p, uid) {
			n++
		}
	}
	return n
}

func observeAck(d time.Duration) { pushAck.Observe(d.Seconds()) }
