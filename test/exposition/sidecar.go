// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/quota"
)

// engine enforces a limit of every kind.
type engine struct{}

func (engine) DecideWait(context.Context, limiter.Time, ...*admission.Request) (admission.Decision, bool) {
	return admission.Decision{}, true
}
func (engine) Explain(*admission.Request, limiter.Time) (admission.Explanation, bool) {
	return admission.Explanation{}, false
}
func (engine) Ready() error { return nil }
func (engine) State(limiter.Time) admission.State {
	return admission.State{Policies: []admission.PolicyState{{
		Namespace: "shop", Name: "checkout", Generation: 1,
		Limits: []admission.LimitState{
			{Name: "all", Balance: new(1.0), Lent: &admission.LentState{}, Waiting: new(uint64(0)), Held: new(uint64(0))},
			{Name: "per-key", Keys: new(1)},
			{Name: "flight", InFlight: new(uint64(1))},
			{Name: "shadow", Shadow: true, Balance: new(1.0)},
		},
	}}}
}

// Sidecar is what a sidecar answers to a scrape.
func Sidecar() (string, error) {
	a := admin.New(admin.Options{
		Pod: "shop/checkout-0", Version: "v0.0.0", Incarnation: "a", Engine: engine{}, Clock: limiter.Now,
		Quota:    func() quota.Status { return quota.Status{Connected: true} },
		Draining: func() bool { return false },
		Drain:    func() {},
	})
	a.Observe(1e-6)
	w := httptest.NewRecorder()
	a.Public().ServeHTTP(w, httptest.NewRequest(http.MethodGet, quotav1.PathMetrics, nil))
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("scrape of a sidecar: status %d: %s", w.Code, w.Body)
	}
	return w.Body.String(), nil
}
