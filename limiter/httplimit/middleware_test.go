// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate/limiter"
)

func serve(t *testing.T, m Middleware) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w
}

func always(d limiter.Decision) func(*http.Request) limiter.Decision {
	return func(*http.Request) limiter.Decision { return d }
}

func TestClientsLearnWhatIsLeftAndWhenToComeAgain(t *testing.T) {
	tests := map[string]struct {
		name                           string
		window                         time.Duration
		decision                       limiter.Decision
		wantStatus                     int
		wantPolicy, wantLeft, wantRest string
	}{
		"an allowed request": {
			"", time.Minute, limiter.Decision{Allowed: true, Remaining: 7*limiter.Token + 1, Limit: 10 * limiter.Token},
			204, `"default";q=10;w=60`, `"default";r=7`, "",
		},
		"a denied request is told whole seconds, rounded up": {
			"per-key", 0, limiter.Decision{RetryAfter: 1500 * time.Millisecond, Limit: 10 * limiter.Token},
			429, `"per-key";q=10`, `"per-key";r=0;t=2`, "2",
		},
		"never less than a second": {
			"a", 0, limiter.Decision{RetryAfter: 1, Limit: limiter.Token}, 429, `"a";q=1`, `"a";r=0;t=1`, "1",
		},
		"nor more than there are": {
			"a", 0, limiter.Decision{RetryAfter: math.MaxInt64 - 1, Limit: limiter.Token}, 429, `"a";q=1`, `"a";r=0;t=9223372037`, "9223372037",
		},
		"a request that can never pass is told nothing to wait for": {
			"a", 0, limiter.Decision{RetryAfter: limiter.Never, Limit: limiter.Token}, 429, `"a";q=1`, `"a";r=0`, "",
		},
		"a name cannot break the header": {
			"a\"\\\n;b", 0, limiter.Decision{Allowed: true}, 204, `"a\"\\;b";q=0`, `"a\"\\;b";r=0`, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, Middleware{Decide: always(tc.decision), Name: tc.name, Window: tc.window})
			if w.Code != tc.wantStatus {
				t.Errorf("got status %d, want %d", w.Code, tc.wantStatus)
			}
			for header, want := range map[string]string{"RateLimit-Policy": tc.wantPolicy, "RateLimit": tc.wantLeft, "Retry-After": tc.wantRest} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s: got %s, want %s", header, got, want)
				}
			}
		})
	}
}

func TestADeniedRequestIsAnsweredWithAProblemDocument(t *testing.T) {
	w := serve(t, Middleware{Decide: always(limiter.Decision{}), Name: "per-key"})
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("got %s", got)
	}
	var doc problemDocument
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Status != 429 || len(doc.ViolatedPolicies) != 1 || doc.ViolatedPolicies[0] != "per-key" {
		t.Errorf("got %+v", doc)
	}
}

func TestADenialCanBeWrittenByTheApplication(t *testing.T) {
	w := serve(t, Middleware{Decide: always(limiter.Decision{RetryAfter: time.Second}), Denied: http.NotFoundHandler()})
	if w.Code != http.StatusNotFound || w.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
}

func TestTwoLimitsAreBothTold(t *testing.T) {
	inner := Middleware{Decide: always(limiter.Decision{Allowed: true}), Name: "inner"}.Wrap(http.NotFoundHandler())
	w := httptest.NewRecorder()
	Middleware{Decide: always(limiter.Decision{Allowed: true}), Name: "outer"}.Wrap(inner).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Header().Values("RateLimit"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}
