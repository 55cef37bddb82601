// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import "github.com/prometheus/client_golang/prometheus"

// results of the webhook.
const (
	resultInjected      = "injected"
	resultNotCovered    = "not_covered"
	resultNotInjectable = "not_injectable"
	resultError         = "error"
)

var injections = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "headgate_injections_total",
	Help: "Pods that the webhook was asked about, by what became of them: injected, not_covered (by a policy, or left alone on purpose), not_injectable (the policy's condition says why), error (something failed; the pod starts without the sidecar).",
}, []string{"result"})

func init() {
	for _, result := range []string{resultInjected, resultNotCovered, resultNotInjectable, resultError} {
		injections.WithLabelValues(result) // the first one is seen as an increase
	}
}

// Collectors are the package's metrics.
func Collectors() []prometheus.Collector { return []prometheus.Collector{injections} }
