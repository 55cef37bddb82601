// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// offered is what the process reports as asked of each limit.
func offered(e *Engine) map[string]uint64 {
	out := map[string]uint64{}
	for _, u := range e.Usage() {
		out[u.GetLimitId()] = u.GetOffered()
	}
	return out
}

// An autoscaler follows these counts: what a limit refuses must not vanish from them.
func TestWhatIsOfferedCountsRequestsWhateverBecomesOfThem(t *testing.T) {
	t.Run("a limit sees the demand that another one denies", func(t *testing.T) {
		e := New(Options{})
		apply(t, e, start, snapshot("v1", limit("wide", 1, 100), limit("narrow", 1, 2, prefix("/v1"))), part("wide", 1, 1), part("narrow", 1, 1))
		admitted(e, start, 10, request("/v1/x"))
		admitted(e, start, 5, request("/x"))
		if got := offered(e); got["uid/wide"] != 15 || got["uid/narrow"] != 10 {
			t.Errorf("offered %v, want 15 and 10", got)
		}
	})
	t.Run("requests count as one each, whatever they cost", func(t *testing.T) {
		e := New(Options{})
		l := limit("all", 10, 10)
		l.Cost = &quotav1.Cost{Source: &quotav1.Cost_Tokens{Tokens: 4}}
		apply(t, e, start, snapshot("v1", l), part("all", 1, 1))
		admitted(e, start, 5, request("/"))
		if got := offered(e)["uid/all"]; got != 5 {
			t.Errorf("offered %d, want 5", got)
		}
	})
	t.Run("who waits is counted from the first moment, and once", func(t *testing.T) {
		e := New(Options{})
		apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), time.Second)), part("all", 1, 1))
		e.Decide(request("/"), start)
		var stays, leaves waiter
		stays.decide(e, request("/"), start)
		leaves.decide(e, request("/"), start)
		if got := offered(e)["uid/all"]; got != 3 {
			t.Errorf("offered %d while two wait, want 3", got)
		}
		leaves.held.Cancel()
		turns(e, start, at(time.Second))
		if len(stays.got) != 1 || !stays.got[0].Allowed {
			t.Fatalf("the one that stayed: %+v", stays.got)
		}
		if got := offered(e)["uid/all"]; got != 3 {
			t.Errorf("offered %d when all is over, want 3", got)
		}
		s := e.State(start).Policies[0].Limits[0]
		if *s.Held != 2 || *s.Waiting != 0 {
			t.Errorf("held %d, waiting %d; want 2 and 0", *s.Held, *s.Waiting)
		}
	})
}
