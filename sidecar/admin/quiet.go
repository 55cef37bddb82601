// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"io"
	"net/http"
	"time"
)

const (
	// longestQuiet bounds how long a caller may be held, mostWaiting how many at a time: anybody who reaches the port may ask.
	longestQuiet = 10 * time.Minute
	mostWaiting  = 1000
)

// quiet answers once no client has come for the time ?for=5s, and at the latest after the time ?within=15s. It is the
// preStop hook of apps that have none: a pod that ends is asked for as long as endpoints, proxies and clients remember it,
// which is a moment in a small cluster and many seconds in a large or a busy one, and each request shall find an app that
// has as long to answer it as if it were the last. In a pod that goes on (the kubelet restarts one container) only the
// time since the call counts.
func (a *Admin) quiet(w http.ResponseWriter, r *http.Request) {
	still, ok := durationOf(r, "for")
	within, ok2 := durationOf(r, "within")
	if !ok || !ok2 {
		http.Error(w, "say for how long no client shall have come, and how long to wait for that: ?for=5s&within=15s", http.StatusBadRequest)
		return
	}
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > mostWaiting {
		http.Error(w, "too many wait already", http.StatusServiceUnavailable)
		return
	}
	end := time.NewTimer(max(within, still))
	defer end.Stop()
	called := a.options.Clock()
	for {
		since := called
		if a.options.Draining() {
			since = max(called, a.options.Asked())
		}
		left := still - a.options.Clock().Sub(since)
		if left <= 0 {
			_, _ = io.WriteString(w, "quiet\n")
			return
		}
		again := time.NewTimer(left)
		select {
		case <-again.C:
		case <-end.C:
			again.Stop()
			_, _ = io.WriteString(w, "not quiet, but time is up\n")
			return
		case <-r.Context().Done():
			again.Stop()
			return
		}
	}
}

// durationOf reads a duration of the query, 0 when it is absent; ok is false where it is none.
func durationOf(r *http.Request, name string) (d time.Duration, ok bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	return min(d, longestQuiet), err == nil && d >= 0
}
