// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/release"
	"github.com/headgate/headgate/controllers/certs"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/ratelimitpolicy"
)

// Collectors are the operator's own metrics.
func Collectors(home *quota.Home, expiry certs.Expiry, policies client.Reader) []prometheus.Collector {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "headgate_build_info",
		Help: "1, with the version of the program.",
	}, []string{"program", "version"})
	build.WithLabelValues("operator", release.Version()).Set(1)
	out := append(quota.Collectors(home), injector.Collectors()...)
	return append(out, build, expiry, &ratelimitpolicy.Conditions{Reader: policies, Leading: func() bool {
		_, leading := home.Leading()
		return leading
	}})
}

// profiles are the handlers of pprof, for the metrics server: behind its authentication.
func profiles() map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
	}
}
