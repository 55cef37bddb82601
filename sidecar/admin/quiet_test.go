// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

func TestAnAppIsKeptForAsLongAsClientsCome(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		drain time.Duration // when the drain begins; below 0 = never
		until time.Duration // a client comes each 100 ms until then
		query string
		took  time.Duration
	}{
		"nobody comes":                                        {0, 0, "?for=5s&within=15s", 5 * time.Second},
		"clients come for a moment":                           {0, 950 * ms, "?for=5s&within=15s", 5900 * ms},
		"endpoints are slow to forget the pod":                {0, 8050 * ms, "?for=5s&within=15s", 13 * time.Second},
		"a client never learns":                               {0, time.Hour, "?for=5s&within=15s", 15 * time.Second},
		"the drain begins late":                               {3 * time.Second, 4050 * ms, "?for=5s&within=15s", 9 * time.Second},
		"one container restarts, and the pod goes on":         {-1, time.Hour, "?for=5s&within=15s", 5 * time.Second},
		"a limit below what is asked for does not shorten it": {0, 0, "?for=5s&within=2s", 5 * time.Second},
		"without a limit it is the time that was asked for":   {0, time.Hour, "?for=5s", 5 * time.Second},
		"nothing was asked for":                               {0, time.Hour, "", 0},
		"a wait without end is bounded":                       {0, 2 * time.Hour, "?for=1h&within=10h", longestQuiet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := limiter.Now()
				draining := func() bool { return tc.drain >= 0 && limiter.Now().Sub(begin) >= tc.drain }
				a := New(Options{Engine: &engine{}, Clock: limiter.Now, Draining: draining, Asked: func() limiter.Time {
					passed := min(limiter.Now().Sub(begin), tc.until)
					return begin.Add(passed.Truncate(100 * ms))
				}})
				if status, body := ask(a.Public(), http.MethodGet, quotav1.PathQuiet+tc.query, ""); status != http.StatusOK {
					t.Errorf("status %d: %s", status, body)
				}
				if took := limiter.Now().Sub(begin); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
			})
		})
	}
}

func TestAWaitThatIsNoDurationIsRefusedWithAnExample(t *testing.T) {
	a := New(Options{Engine: &engine{}, Clock: limiter.Now, Draining: func() bool { return true }, Asked: limiter.Now})
	for _, query := range []string{"?for=soon", "?for=-5s", "?for=5s&within=later"} {
		if status, body := ask(a.Public(), http.MethodGet, quotav1.PathQuiet+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", query, status, body)
		}
	}
}

func TestHowManyMayWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Engine: &engine{}, Clock: limiter.Now, Draining: func() bool { return false }})
		wait := quotav1.PathQuiet + "?for=5s"
		var waiters sync.WaitGroup
		for range mostWaiting {
			waiters.Go(func() {
				if status, body := ask(a.Public(), http.MethodGet, wait, ""); status != http.StatusOK {
					t.Errorf("status %d: %s", status, body)
				}
			})
		}
		synctest.Wait()
		if status, _ := ask(a.Public(), http.MethodGet, wait, ""); status != http.StatusServiceUnavailable {
			t.Errorf("status %d for one more", status)
		}
		waiters.Wait()
		if status, _ := ask(a.Public(), http.MethodGet, wait, ""); status != http.StatusOK {
			t.Errorf("status %d once they have gone", status)
		}
	})
}
