// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"io"
	"net/http"
	"time"
)

const (
	// longestWait bounds what a caller may ask for; look is how often readiness is looked at meanwhile.
	longestWait = 5 * time.Second
	look        = 20 * time.Millisecond
)

// readiness answers 200 when the pod can serve, else 503 with the reason. With ?wait=900ms it holds the answer until then
// if the pod is not ready but may soon be: a kubelet, which asks once a second, hears of the share when it comes and not a
// second later.
func (a *Admin) readiness(w http.ResponseWriter, r *http.Request) {
	reason := a.unready()
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil && wait > 0 {
		end := time.NewTimer(min(wait, longestWait))
		defer end.Stop()
		again := time.NewTicker(look)
		defer again.Stop()
		for over := false; reason != "" && !over && !a.options.Draining(); reason = a.unready() {
			select {
			case <-again.C:
			case <-end.C:
				over = true
			case <-r.Context().Done():
				return
			}
		}
	}
	if reason != "" {
		http.Error(w, "not ready: "+reason, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}

// unready says why the pod cannot serve, or nothing.
func (a *Admin) unready() string {
	if a.options.Draining() {
		return "draining"
	}
	err := a.options.Engine.Ready()
	if err == nil {
		return ""
	}
	if s := a.options.Quota(); !s.Connected && s.LastError != "" {
		return err.Error() + "; operator not connected: " + s.LastError
	}
	return err.Error()
}
