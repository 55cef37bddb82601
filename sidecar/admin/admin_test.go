// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

// engine is an Engine without limits.
type engine struct {
	ready    error
	decision admission.Decision
	state    admission.State
}

func (e *engine) DecideWait(context.Context, limiter.Time, ...*admission.Request) (admission.Decision, bool) {
	return e.decision, true
}
func (e *engine) Explain(*admission.Request, limiter.Time) (admission.Explanation, bool) {
	return admission.Explanation{Verdict: "admitted"}, e.ready == nil
}
func (e *engine) State(limiter.Time) admission.State { return e.state }
func (e *engine) Ready() error                       { return e.ready }

// ask returns the answer of a handler.
func ask(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	all, _ := io.ReadAll(w.Body)
	return w.Code, string(all)
}

func TestReadinessSaysWhyNot(t *testing.T) {
	for name, tc := range map[string]struct {
		ready    error
		draining bool
		stream   quota.Status
		status   int
		want     string
	}{
		"ready":                        {nil, false, quota.Status{Connected: true}, 200, "ready\n"},
		"ready without the operator":   {nil, false, quota.Status{LastError: "gone"}, 200, "ready\n"},
		"draining":                     {nil, true, quota.Status{Connected: true}, 503, "not ready: draining\n"},
		"no share":                     {errors.New("no share"), false, quota.Status{Connected: true}, 503, "not ready: no share\n"},
		"no share and no operator":     {errors.New("no share"), false, quota.Status{LastError: "gone"}, 503, "not ready: no share; operator not connected: gone\n"},
		"no share at the first moment": {errors.New("no share"), false, quota.Status{}, 503, "not ready: no share\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := New(Options{
				Engine:   &engine{ready: tc.ready},
				Clock:    limiter.Now,
				Quota:    func() quota.Status { return tc.stream },
				Draining: func() bool { return tc.draining },
			})
			if status, body := ask(a.Public(), http.MethodGet, quotav1.PathReady, ""); status != tc.status || body != tc.want {
				t.Errorf("got %d %q, want %d %q", status, body, tc.status, tc.want)
			}
			if status, _ := ask(a.Public(), http.MethodGet, quotav1.PathStarted, ""); status != http.StatusOK {
				t.Errorf("started: %d", status)
			}
		})
	}
}

func TestNobodyOutsideThePodCanDrainOrSpend(t *testing.T) {
	drained := 0
	a := New(Options{
		Engine:   &engine{decision: admission.Decision{Allowed: true}},
		Clock:    limiter.Now,
		Quota:    func() quota.Status { return quota.Status{} },
		Draining: func() bool { return false },
		Drain:    func() { drained++ },
	})
	for _, path := range []string{quotav1.PathDrain, quotav1.PathCheck, quotav1.PathState} {
		if status, _ := ask(a.Public(), http.MethodPost, path, `{"path":"/"}`); status != http.StatusNotFound {
			t.Errorf("%s on the pod's address: %d, want 404", path, status)
		}
	}
	if status, _ := ask(a.Local(), http.MethodGet, quotav1.PathDrain, ""); status != http.StatusMethodNotAllowed || drained != 0 {
		t.Errorf("GET of drain: %d, drained %d times", status, drained)
	}
	if status, _ := ask(a.Local(), http.MethodPost, quotav1.PathDrain, ""); status != http.StatusOK || drained != 1 {
		t.Errorf("POST of drain: %d, drained %d times", status, drained)
	}
}

func TestACheckWithoutASnapshotIsNoDenial(t *testing.T) {
	a := New(Options{Engine: &engine{decision: admission.Decision{Unavailable: true}}, Clock: limiter.Now, Quota: func() quota.Status { return quota.Status{} }})
	if status, body := ask(a.Local(), http.MethodPost, quotav1.PathCheck, `{"path":"/"}`); status != http.StatusServiceUnavailable || !strings.Contains(body, "no snapshot") {
		t.Errorf("got %d %q", status, body)
	}
}
