// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/sidecar/admission"
)

// Labels. Their values come from policies, so that their number is bounded by what people wrote. The namespace is the pod's own:
// whoever scrapes knows it better than the pod, which could claim another.
const (
	labelPolicy   = "policy"
	labelLimit    = "limit" // its name, or name/variant
	labelDecision = "decision"

	decisionAllowed = "allowed"
	decisionDenied  = "denied"
	// decisionWouldDeny counts what a limit in shadow mode let through.
	decisionWouldDeny = "would_deny"
)

// metrics reads most figures from the engine when it is scraped, so that they cost the requests nothing.
type metrics struct {
	options   Options
	registry  *prometheus.Registry
	decisions prometheus.Histogram
}

var (
	requestsDesc = prometheus.NewDesc("headgate_requests_total",
		"Requests that a limit decided, by what it said. would_deny is of limits in shadow mode, which let through what they would deny.", []string{labelPolicy, labelLimit, labelDecision}, nil)
	costDesc = prometheus.NewDesc("headgate_request_cost_total",
		"Tokens that the requests of headgate_requests_total cost.", []string{labelPolicy, labelLimit, labelDecision}, nil)
	shareDesc = prometheus.NewDesc("headgate_share_tokens_per_second",
		"Rate of this pod's share of a limit; of each key, where the limit has keys.", []string{labelPolicy, labelLimit}, nil)
	balanceDesc = prometheus.NewDesc("headgate_balance_tokens",
		"Tokens that a limit without a key has left in this pod.", []string{labelPolicy, labelLimit}, nil)
	keysDesc = prometheus.NewDesc("headgate_keys",
		"Keys that a limit remembers in this pod.", []string{labelPolicy, labelLimit}, nil)
	sharedDesc = prometheus.NewDesc("headgate_shared_key_decisions_total",
		"Decisions on keys that found no memory of their own and were counted together, on the strict side.", []string{labelPolicy, labelLimit}, nil)
	heldDesc = prometheus.NewDesc("headgate_held_requests_total",
		"Requests that had to wait for their tokens, of limits that delay or whose tokens are lent.", []string{labelPolicy, labelLimit}, nil)
	waitingDesc = prometheus.NewDesc("headgate_waiting_requests",
		"Requests that wait for their tokens now, of limits that delay or whose tokens are lent.", []string{labelPolicy, labelLimit}, nil)
	borrowedDesc = prometheus.NewDesc("headgate_borrowed_tokens",
		"Tokens that this pod has borrowed and not spent.", []string{labelPolicy, labelLimit}, nil)
	notLentDesc = prometheus.NewDesc("headgate_keys_not_lent_total",
		"How often a key ran short and was not let borrow, since too many do: it lives on the pod's share.", []string{labelPolicy, labelLimit}, nil)
	inFlightDesc = prometheus.NewDesc("headgate_in_flight_requests",
		"Requests under way that a limit of concurrency counts in this pod.", []string{labelPolicy, labelLimit}, nil)
	connectedDesc = prometheus.NewDesc("headgate_quota_connected",
		"1 while the stream to the leading operator is alive.", nil, nil)
	generationDesc = prometheus.NewDesc("headgate_snapshot_generation",
		"Generation of a policy that is in force in this pod.", []string{labelPolicy}, nil)
	buildDesc = prometheus.NewDesc("headgate_build_info",
		"1, with the version of the program.", []string{"program", "version"}, nil)
)

func newMetrics(o Options) *metrics {
	m := &metrics{
		options:  o,
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "headgate_decision_seconds",
			Help: "How long deciding a request took.",
			// From a cached bucket (under 1 us) to a sidecar without CPU (10 ms).
			Buckets: []float64{250e-9, 500e-9, 1e-6, 2.5e-6, 5e-6, 10e-6, 50e-6, 250e-6, 1e-3, 10e-3},
		}),
	}
	m.registry.MustRegister(m, m.decisions, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, costDesc, shareDesc, balanceDesc, keysDesc, sharedDesc, heldDesc, waitingDesc, borrowedDesc, notLentDesc, inFlightDesc,
		connectedDesc, generationDesc, buildDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	connected := 0.0
	if m.options.Quota().Connected {
		connected = 1
	}
	gauge(connectedDesc, connected)
	gauge(buildDesc, 1, "sidecar", m.options.Version)
	for _, p := range m.options.Engine.State(m.options.Clock()).Policies {
		gauge(generationDesc, float64(p.Generation), p.Name)
		for i := range p.Limits {
			collectLimit(&p.Limits[i], p.Name, counter, gauge)
		}
	}
}

func collectLimit(l *admission.LimitState, policy string, counter func(*prometheus.Desc, uint64, ...string), gauge func(*prometheus.Desc, float64, ...string)) {
	limit, denied := l.Label(), decisionDenied
	if l.Shadow {
		denied = decisionWouldDeny
	}
	counter(requestsDesc, l.Allowed, policy, limit, decisionAllowed)
	counter(requestsDesc, l.Denied, policy, limit, denied)
	counter(costDesc, l.AllowedCost, policy, limit, decisionAllowed)
	counter(costDesc, l.DeniedCost, policy, limit, denied)
	gauge(shareDesc, l.RatePerSecond, policy, limit)
	if l.Balance != nil {
		gauge(balanceDesc, *l.Balance, policy, limit)
	}
	if l.InFlight != nil {
		gauge(inFlightDesc, float64(*l.InFlight), policy, limit)
	}
	if l.Held != nil && l.Waiting != nil {
		counter(heldDesc, *l.Held, policy, limit)
		gauge(waitingDesc, float64(*l.Waiting), policy, limit)
	}
	if l.Lent != nil {
		gauge(borrowedDesc, float64(l.Lent.Outstanding), policy, limit)
		counter(notLentDesc, l.Lent.Turned, policy, limit)
	}
	if l.Keys != nil {
		gauge(keysDesc, float64(*l.Keys), policy, limit)
		counter(sharedDesc, l.SharedKeys, policy, limit)
	}
}
