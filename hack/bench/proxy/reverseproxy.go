// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"golang.org/x/time/rate"
)

// reverseProxy is what Go's standard library offers, with the usual limiter.
func reverseProxy(listen, app string) error {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: app})
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	admitted, denied := rate.NewLimiter(1e6, 1e6), rate.NewLimiter(0.0001, 1)
	return http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limiter := admitted
		if strings.HasPrefix(r.URL.Path, "/no/") {
			limiter = denied
		}
		if !limiter.Allow() {
			http.Error(w, "over limit", http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
}
