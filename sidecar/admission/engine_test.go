// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func TestNothingIsAdmittedBeforeTheFirstSnapshot(t *testing.T) {
	e := New(Options{})
	if d := e.Decide(request("/"), start); d.Allowed || !d.Unavailable || len(d.Denied) > 0 {
		t.Errorf("got %+v, want unavailable, which is no denial", d)
	}
	if !errors.Is(e.Ready(), ErrNoSnapshot) {
		t.Errorf("ready: %v", e.Ready())
	}
}

func TestASnapshotWithoutLimitsAdmitsEverything(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, &quotav1.Snapshot{Version: "v0"})
	if d := e.Decide(request("/"), start); !d.Allowed || e.Ready() != nil {
		t.Errorf("got %+v, ready: %v", d, e.Ready())
	}
}

func TestALimitWithoutAShareAdmitsNothing(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("all", 10, 10)))
	if got := admitted(e, at(time.Hour), 5, request("/")); got != 0 {
		t.Errorf("admitted %d", got)
	}
	if !errors.Is(e.Ready(), ErrNoShare) {
		t.Errorf("ready: %v, want it to name the limit", e.Ready())
	}
}

func TestSharesStartEmptyAndEarnTheirPart(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("all", 10, 10)), part("all", 2, 0))
	if got := admitted(e, start, 5, request("/")); got != 0 {
		t.Errorf("admitted %d at once, want none: a new pod mints nothing", got)
	}
	if got := admitted(e, at(400*time.Millisecond), 5, request("/")); got != 2 {
		t.Errorf("admitted %d after 0.4 s at 5/s, want 2", got)
	}
	if got := admitted(e, at(time.Hour), 50, request("/")); got != 5 {
		t.Errorf("admitted %d after an hour, want half of the burst of 10", got)
	}
}

func TestTheFirstFillIsGivenOnceAndCutToTheShare(t *testing.T) {
	e := New(Options{})
	s := snapshot("v1", limit("all", 1, 12))
	apply(t, e, start, s, part("all", 2, 4))
	if got := admitted(e, start, 50, request("/")); got != 3 {
		t.Errorf("admitted %d, want a quarter of the burst of 12", got)
	}
	apply(t, e, start, s, part("all", 2, 4))
	if got := admitted(e, start, 50, request("/")); got != 0 {
		t.Errorf("admitted %d after the same assignment again, want none", got)
	}
	apply(t, e, start, s, part("all", 3, 1))
	if got := admitted(e, start, 50, request("/")); got != 0 {
		t.Errorf("admitted %d after a fill of a share that was there, want none", got)
	}
	other := New(Options{})
	apply(t, other, start, s, part("all", 2, 1))
	if got := admitted(other, start, 50, request("/")); got != 6 {
		t.Errorf("admitted %d of a fill above the share, want the share's burst of 6", got)
	}
}

func TestAShareThatComesBackStartsEmpty(t *testing.T) {
	e := New(Options{})
	s := snapshot("v1", limit("all", 10, 10))
	apply(t, e, start, s, part("all", 1, 1))
	apply(t, e, start, s)
	if got := admitted(e, at(time.Second), 5, request("/")); got != 0 {
		t.Errorf("admitted %d without a share", got)
	}
	apply(t, e, at(time.Second), s, part("all", 1, 0))
	if got := admitted(e, at(time.Second), 5, request("/")); got != 0 {
		t.Errorf("admitted %d with the share back, want none", got)
	}
	apply(t, e, at(time.Second), snapshot("v2"))
	apply(t, e, at(time.Second), s, part("all", 1, 0))
	if got := admitted(e, at(time.Second), 5, request("/")); got != 0 {
		t.Errorf("admitted %d with the limit back, want none", got)
	}
}

func TestBalancesSurviveChanges(t *testing.T) {
	full := func(l *quotav1.Limit) *Engine {
		e := New(Options{})
		apply(t, e, start, snapshot("v1", l), part("all", 1, 1))
		return e
	}
	for name, tc := range map[string]struct {
		change func(e *Engine)
		want   int
	}{
		"a smaller share clamps": {func(e *Engine) { apply(t, e, start, snapshot("v1", limit("all", 10, 10)), part("all", 2, 0)) }, 5},
		"a larger burst adds room, not tokens": {func(e *Engine) {
			apply(t, e, start, snapshot("v2", limit("all", 10, 100)), part("all", 1, 0))
		}, 10},
		"a smaller and again larger share mints nothing": {func(e *Engine) {
			apply(t, e, start, snapshot("v1", limit("all", 10, 10)), part("all", 5, 0))
			apply(t, e, start, snapshot("v1", limit("all", 10, 10)), part("all", 1, 0))
		}, 2},
		"other matches keep the balance": {func(e *Engine) {
			apply(t, e, start, snapshot("v2", limit("all", 10, 10, prefix("/x"))), part("all", 1, 0))
		}, 10},
		"another limit beside it changes nothing": {func(e *Engine) {
			apply(t, e, start, snapshot("v2", limit("all", 10, 10), limit("other", 1, 1, prefix("/other"))), part("all", 1, 0), part("other", 1, 0))
		}, 10},
		"another key starts with nothing": {func(e *Engine) {
			apply(t, e, start, snapshot("v2", keyed(limit("all", 10, 10), byClient(0, 0))), part("all", 1, 0))
		}, 0},
		"another key starts with nothing whatever fills it": {func(e *Engine) {
			apply(t, e, start, snapshot("v2", keyed(limit("all", 10, 10), byClient(0, 0))), part("all", 1, 1))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(limit("all", 10, 10))
			tc.change(e)
			if got := admitted(e, start, 200, request("/x")); got != tc.want {
				t.Errorf("admitted %d, want %d", got, tc.want)
			}
		})
	}
}

func TestABadAssignmentChangesNothing(t *testing.T) {
	good := snapshot("v1", limit("all", 10, 10))
	with := func(change func(*quotav1.Limit)) *quotav1.Snapshot {
		l := limit("all", 10, 10)
		change(l)
		return snapshot("bad", l)
	}
	for name, tc := range map[string]struct {
		snapshot *quotav1.Snapshot
		shares   []*quotav1.Share
	}{
		"no snapshot":              {nil, nil},
		"no version":               {snapshot(""), nil},
		"no rate":                  {with(func(l *quotav1.Limit) { l.Rate = nil }), nil},
		"a rate without a period":  {with(func(l *quotav1.Limit) { l.Rate.PeriodNanoseconds = 0 }), nil},
		"a period beyond all time": {with(func(l *quotav1.Limit) { l.Rate.PeriodNanoseconds = 1 << 63 }), nil},
		"an absurd rate":           {with(func(l *quotav1.Limit) { l.Rate.Requests = 1 << 63 }), nil},
		"no burst":                 {with(func(l *quotav1.Limit) { l.Burst = 0 }), nil},
		"an absurd burst":          {with(func(l *quotav1.Limit) { l.Burst = 1 << 63 }), nil},
		"an unknown scope":         {with(func(l *quotav1.Limit) { l.Scope = 9 }), nil},
		"an unknown strategy":      {with(func(l *quotav1.Limit) { l.Strategy = 9 }), nil},
		"a key of unknown kind":    {with(func(l *quotav1.Limit) { l.Key = []*quotav1.KeyPart{{}} }), nil},
		"an address cut too long":  {with(func(l *quotav1.Limit) { l.Key = []*quotav1.KeyPart{byClient(33, 0)} }), nil},
		"a limit without an id":    {with(func(l *quotav1.Limit) { l.Id = "" }), nil},
		"a bad match":              {with(func(l *quotav1.Limit) { l.Matches = []*quotav1.Match{prefix("x")} }), nil},
		"a name used twice":        {snapshot("bad", limit("all", 1, 1), limit("all", 2, 2)), nil},
		"a policy twice":           {&quotav1.Snapshot{Version: "bad", Policies: []*quotav1.Policy{{Name: "a"}, {Name: "a"}}}, nil},
		"a share of no limit":      {good, []*quotav1.Share{part("other", 1, 0)}},
		"two shares of one limit":  {good, []*quotav1.Share{part("all", 2, 0), part("all", 2, 0)}},
		"more than the whole":      {good, []*quotav1.Share{{LimitId: "uid/all", Units: quotav1.Whole + 1}}},
		"a fill of more than all":  {good, []*quotav1.Share{{LimitId: "uid/all", FillUnits: quotav1.Whole + 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			apply(t, e, start, good, part("all", 2, 2))
			before := e.State(start)
			if err := e.Apply(tc.snapshot, tc.shares, start); err == nil {
				t.Fatal("applied, want an error")
			}
			if diff := cmp.Diff(before, e.State(start)); diff != "" {
				t.Errorf("state changed: %s", diff)
			}
			if got := admitted(e, start, 50, request("/")); got != 5 {
				t.Errorf("admitted %d, want the 5 that were there", got)
			}
		})
	}
}

func TestHoldingsAndUsageAreReported(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("a", 10, 10), limit("b", 1, 2)), part("a", 4, 1))
	want := []*quotav1.Holding{{LimitId: "uid/a", Units: quotav1.Whole / 4}}
	if diff := cmp.Diff(want, e.Holdings(), protocmp.Transform()); diff != "" {
		t.Errorf("holdings: %s", diff)
	}
	apply(t, e, start, snapshot("v2", limit("a", 10, 10)), part("a", 1, 0))
	if got := admitted(e, start, 5, request("/")); got != 2 {
		t.Fatalf("admitted %d, want the 2 of a quarter of 10", got)
	}
	e.Stop(start)
	usage := []*quotav1.LimitUsage{{LimitId: "uid/a", Admitted: 2, Denied: 3, Offered: new(uint64(5))}}
	if diff := cmp.Diff(usage, e.Usage(), protocmp.Transform()); diff != "" {
		t.Errorf("usage after Stop: %s", diff)
	}
}

func TestNothingIsAdmittedAfterStop(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("all", 10, 10)), part("all", 1, 1))
	e.Stop(start)
	if d := e.Decide(request("/"), start); d.Allowed || !d.Unavailable {
		t.Errorf("got %+v", d)
	}
	if err := e.Apply(snapshot("v1"), nil, start); !errors.Is(err, ErrStopped) {
		t.Errorf("Apply after Stop: %v", err)
	}
}

// An acknowledgement leaves after Apply returns; a decision by the older share that came later would be a token that
// another pod was given as well.
func TestNoDecisionUsesAnOlderShareOnceApplyHasReturned(t *testing.T) {
	const rounds = 100
	s := snapshot("v1", limit("all", 1, 100), keyed(limit("each", 1, 100), byHeader("x-key")))
	e := New(Options{Keys: 16})
	var returned, late atomic.Int64
	var workers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		workers.Go(func() {
			r := request("/", "x-key", "a")
			for {
				select {
				case <-stop:
					return
				default:
				}
				// Odd: the round's share has been taken away and Apply has returned before this decision began.
				before := returned.Load()
				d := e.Decide(r, start)
				if before%2 == 1 && returned.Load() == before && d.Allowed {
					late.Add(1)
				}
			}
		})
	}
	for i := range rounds {
		apply(t, e, start, s, part("all", 1, 1), part("each", 1, 1))
		if i%2 == 0 {
			apply(t, e, start, s) // the shares go
		} else {
			apply(t, e, start, snapshot("v3", limit("all", 1, 100))) // the share and the other limit go
		}
		returned.Add(1)
		time.Sleep(10 * time.Microsecond)
		returned.Add(1)
	}
	close(stop)
	workers.Wait()
	if late.Load() > 0 {
		t.Errorf("%d decisions were made by a share that was gone", late.Load())
	}
}

// blocking is a Header that lets a test act in the middle of a decision.
type blocking func()

func (b blocking) Values(string) []string {
	b()
	return nil
}

func TestADecisionThatApplyOvertakesIsMadeAnew(t *testing.T) {
	old := snapshot("v1", limit("old", 1, 10))
	old.Policies[0].Limits[0].Matches = []*quotav1.Match{headers("x-a", "1"), {}} // looks at a header, and holds
	for name, next := range map[string]*quotav1.Snapshot{
		"the limit is another one":    snapshot("v2", limit("new", 1, 10)),
		"a limit has come beside it":  snapshot("v2", old.Policies[0].Limits[0], limit("new", 1, 10)),
		"the limit's share has gone":  old,
		"there are no limits anymore": snapshot("v2"),
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			apply(t, e, start, old, part("old", 1, 1))
			var once sync.Once
			r := request("/")
			r.Header = blocking(func() { once.Do(func() { apply(t, e, start, next) }) })
			d := e.Decide(r, start)
			if want := len(next.Policies[0].Limits) == 0; d.Allowed != want {
				t.Errorf("allowed = %v, want %v: Apply had returned before a token was taken", d.Allowed, want)
			}
		})
	}
}
