// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/quota"
)

// late is an engine that is ready from a time on.
type late struct {
	engine
	from time.Time
}

func (e *late) Ready() error {
	if time.Now().Before(e.from) {
		return errors.New("no share")
	}
	return nil
}

func TestAKubeletThatWaitsHearsOfTheShareWhenItComes(t *testing.T) {
	for name, tc := range map[string]struct {
		after    time.Duration // until the share comes
		draining bool
		query    string
		status   int
		took     time.Duration // at most
	}{
		"it is there":                     {0, false, "?wait=900ms", http.StatusOK, 0},
		"it comes while the kubelet asks": {300 * time.Millisecond, false, "?wait=900ms", http.StatusOK, 300*time.Millisecond + look},
		"it comes later":                  {time.Second, false, "?wait=900ms", http.StatusServiceUnavailable, 900 * time.Millisecond},
		"a draining pod never waits":      {time.Hour, true, "?wait=900ms", http.StatusServiceUnavailable, 0},
		"nobody asked to wait":            {300 * time.Millisecond, false, "", http.StatusServiceUnavailable, 0},
		"a wait that is no duration":      {300 * time.Millisecond, false, "?wait=soon", http.StatusServiceUnavailable, 0},
		"a wait without end is bounded":   {time.Hour, false, "?wait=10h", http.StatusServiceUnavailable, longestWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Options{
					Engine: &late{from: time.Now().Add(tc.after)}, Clock: limiter.Now,
					Quota:    func() quota.Status { return quota.Status{Connected: true} },
					Draining: func() bool { return tc.draining },
				})
				start := time.Now()
				if status, _ := ask(a.Public(), http.MethodGet, quotav1.PathReady+tc.query, ""); status != tc.status {
					t.Errorf("status %d, want %d", status, tc.status)
				}
				if took := time.Since(start); took > tc.took {
					t.Errorf("it took %s, want at most %s", took, tc.took)
				}
			})
		})
	}
}
