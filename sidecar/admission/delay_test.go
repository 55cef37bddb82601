// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

func delaying(l *quotav1.Limit, most time.Duration) *quotav1.Limit {
	l.MaxDelayNanoseconds = uint64(most)
	return l
}

// waiter is a client that was told to wait.
type waiter struct {
	held *Held
	got  []Decision
}

func (w *waiter) decide(e *Engine, r *Request, now limiter.Time) (d Decision, waits bool) {
	d, w.held = e.DecideOrHold(r, now, func(d Decision) { w.got = append(w.got, d) })
	return d, w.held != nil
}

// turns runs the engine's turns at the times that it asks for, until an instant.
func turns(e *Engine, from, until limiter.Time) {
	for now := from; now <= until; {
		next := e.Turn(now)
		if next <= now {
			panic("the engine asks for a turn in the past")
		}
		now = next
	}
}

func TestNoRequestIsDelayedForLongerThanItsLimitSays(t *testing.T) {
	for name, tc := range map[string]struct {
		delay time.Duration
		waits bool
	}{
		"its turn comes just in time": {100 * time.Millisecond, true},
		"its turn comes too late":     {99 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), tc.delay)), part("all", 1, 1))
			e.Decide(request("/"), start)
			var w waiter
			if d, waits := w.decide(e, request("/"), start); waits != tc.waits || d.Allowed {
				t.Errorf("it waits: %v, %+v", waits, d)
			}
		})
	}
}

func TestARequestOverALimitThatDelaysIsAdmittedWhenItsTokenIsEarned(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), 250*time.Millisecond)), part("all", 1, 1))
	if d := e.Decide(request("/"), start); !d.Allowed {
		t.Fatal("the first token is not there")
	}
	var one, two, three waiter
	for i, w := range []*waiter{&one, &two} {
		if d, waits := w.decide(e, request("/"), start); !waits {
			t.Fatalf("request %d was answered at once: %+v", i, d)
		}
	}
	d, waits := three.decide(e, request("/"), start)
	if waits || d.Allowed || d.RetryAfter != 300*time.Millisecond {
		t.Errorf("the third would wait for 300 ms, more than it may: %v, %+v", waits, d)
	}
	turns(e, start, at(99*time.Millisecond))
	if len(one.got)+len(two.got) != 0 {
		t.Error("admitted before the token was earned")
	}
	turns(e, at(99*time.Millisecond), at(100*time.Millisecond))
	if len(one.got) != 1 || !one.got[0].Allowed || len(two.got) != 0 {
		t.Errorf("after 100 ms: %+v, %+v", one.got, two.got)
	}
	turns(e, at(100*time.Millisecond), at(200*time.Millisecond))
	if len(two.got) != 1 || !two.got[0].Allowed {
		t.Errorf("after 200 ms: %+v", two.got)
	}
}

func TestWhoComesLaterIsNotServedBeforeThoseWhoWait(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", keyed(delaying(limit("all", 10, 1), time.Second), byHeader("x-key"))), part("all", 1, 1))
	a := request("/", "X-Key", "a")
	e.Decide(a, start)
	var first, later waiter
	first.decide(e, a, start)
	// The token is there, and nobody has taken a turn yet.
	if d, waits := later.decide(e, a, at(100*time.Millisecond)); !waits {
		t.Fatalf("served before the one who waits: %+v", d)
	}
	if d := e.Decide(request("/", "X-Key", "b"), start); !d.Allowed {
		t.Errorf("another key waits behind: %+v", d)
	}
	turns(e, at(100*time.Millisecond), at(time.Second))
	if len(first.got) != 1 || len(later.got) != 1 || !first.got[0].Allowed || !later.got[0].Allowed {
		t.Errorf("%+v, %+v", first.got, later.got)
	}
}

func TestAClientThatGoesAwayTakesNothingAndHoldsNobodyUp(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), time.Second)), part("all", 1, 1))
	e.Decide(request("/"), start)
	var gone, stays waiter
	gone.decide(e, request("/"), start)
	stays.decide(e, request("/"), start)
	if !gone.held.Cancel() {
		t.Fatal("not taken back")
	}
	turns(e, start, at(100*time.Millisecond))
	if len(gone.got) != 0 || len(stays.got) != 1 || !stays.got[0].Allowed {
		t.Errorf("%+v, %+v", gone.got, stays.got)
	}
}

func TestWhoWaitsGoesOnUnderNumbersThatChangeAndIsDeniedInTheEnd(t *testing.T) {
	e := New(Options{})
	l := func(n uint64) *quotav1.Limit { return delaying(limit("all", n, 1), 500*time.Millisecond) }
	apply(t, e, start, snapshot("v1", l(10)), part("all", 1, 1))
	e.Decide(request("/"), start)
	var w waiter
	w.decide(e, request("/"), start)
	apply(t, e, at(50*time.Millisecond), snapshot("v2", l(1)), part("all", 1, 0)) // half a token is there, and a whole one takes until 550 ms
	turns(e, at(50*time.Millisecond), at(500*time.Millisecond))
	if len(w.got) != 0 {
		t.Fatalf("answered %+v: the older rate counts no more, and it may wait until 500 ms", w.got)
	}
	turns(e, at(500*time.Millisecond)+1, at(time.Second))
	if len(w.got) != 1 || w.got[0].Allowed {
		t.Errorf("answered %+v", w.got)
	}
}

func TestWhoWaitsForALimitThatGoesIsDeniedAtOnceAndBeforeItsTurn(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), time.Second)), part("all", 1, 1))
	e.Decide(request("/"), start)
	var w waiter
	if d, waits := w.decide(e, request("/"), start); !waits {
		t.Fatalf("it does not wait: %+v", d)
	}
	apply(t, e, at(10*time.Millisecond), snapshot("v2", limit("other", 10, 1)), part("other", 1, 1))
	e.Turn(at(20 * time.Millisecond))
	if len(w.got) != 1 || w.got[0].Allowed || w.got[0].RetryAfter == 0 {
		t.Errorf("after the edit: %+v", w.got)
	}
}

// Somebody else takes what the second limit had when the first one's turn comes, so the request goes on to wait there.
func TestWhoseTurnHasComeAtOneLimitGoesOnToWaitAtAnother(t *testing.T) {
	first := delaying(limit("first", 10, 1, exact("/both")), time.Second)
	second := func(n uint64) *quotav1.Limit { return delaying(limit("second", n, 1), time.Second) }
	for name, tc := range map[string]struct {
		then func(t *testing.T, e *Engine) // at 120 ms
		soon time.Duration                 // when it is answered, 0 for at once
		want bool
	}{
		"until its token is earned there": {func(*testing.T, *Engine) {}, 200 * time.Millisecond, true},
		"by the numbers that then are": {func(t *testing.T, e *Engine) {
			apply(t, e, at(120*time.Millisecond), snapshot("v2", first, second(5)), part("first", 1, 0), part("second", 1, 0))
		}, 280 * time.Millisecond, true}, // a fifth was there at 120 ms
		"and is denied when that one goes": {func(t *testing.T, e *Engine) {
			apply(t, e, at(120*time.Millisecond), snapshot("v2", first), part("first", 1, 0))
		}, 0, false},
		"or the first": {func(t *testing.T, e *Engine) {
			apply(t, e, at(120*time.Millisecond), snapshot("v2", second(10)), part("second", 1, 0))
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			apply(t, e, start, snapshot("v1", first, second(10)), part("first", 1, 1), part("second", 1, 1))
			e.Decide(request("/both"), start)
			var w waiter
			if d, waits := w.decide(e, request("/both"), start); !waits {
				t.Fatalf("it does not wait: %+v", d)
			}
			if d := e.Decide(request("/other"), at(100*time.Millisecond)); !d.Allowed {
				t.Fatalf("somebody else is not served: %+v", d)
			}
			turns(e, at(100*time.Millisecond), at(120*time.Millisecond))
			if len(w.got) != 0 {
				t.Fatalf("answered %+v before the second limit has a token", w.got)
			}
			tc.then(t, e)
			if tc.soon > 0 {
				turns(e, at(120*time.Millisecond), at(tc.soon)-1)
				if len(w.got) != 0 {
					t.Fatalf("answered %+v too early", w.got)
				}
				turns(e, at(tc.soon), at(tc.soon)+1)
			} else {
				e.Turn(at(120 * time.Millisecond))
			}
			if len(w.got) != 1 || w.got[0].Allowed != tc.want || w.got[0].Unavailable {
				t.Errorf("answered %+v", w.got)
			}
		})
	}
}

func TestAnEndedEngineLeavesNobodyWaiting(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", delaying(limit("all", 10, 1), time.Second)), part("all", 1, 1))
	e.Decide(request("/"), start)
	var w waiter
	w.decide(e, request("/"), start)
	e.Stop(at(time.Millisecond))
	if len(w.got) != 1 || !w.got[0].Unavailable {
		t.Errorf("answered %+v", w.got)
	}
}

func TestADelayAndADenialByAnotherLimitTakeNothing(t *testing.T) {
	e := New(Options{})
	hard := limit("hard", 1, 1)
	apply(t, e, start, snapshot("v1", delaying(limit("soft", 10, 1), time.Second), hard), part("soft", 1, 1), part("hard", 1, 1))
	e.Decide(request("/"), start)
	var w waiter
	if d, waits := w.decide(e, request("/"), start); waits || !slices.Contains(d.Names(), "checkout/hard") {
		t.Errorf("a request that another limit denies waits: %v, %+v", waits, d)
	}
}

// Whatever is asked, and whenever: what two limits that delay admit keeps the law of each, each key is served in order, and
// everybody is answered.
func TestDelayingKeepsTheLawAndTheOrderAndAnswersEverybody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.Uint64Range(1, 50).Draw(rt, "rate")
		burst := rapid.Uint64Range(1, 5).Draw(rt, "burst")
		most := time.Duration(rapid.Int64Range(1, 500).Draw(rt, "delay")) * time.Millisecond
		e := New(Options{Keys: 64})
		each := keyed(delaying(limit("each", rate, burst), most), byHeader("x-key"))
		all := delaying(limit("all", 2*rate, 2*burst), most/2+1)
		if err := e.Apply(snapshot("v1", each, all), []*quotav1.Share{part("each", 1, 1), part("all", 1, 1)}, start); err != nil {
			rt.Fatal(err)
		}
		type asked struct {
			key   string
			asked int
			w     waiter
		}
		var everybody []*asked
		admitted := map[string][]limiter.Time{}
		order := map[string]int{}
		now := start
		note := func(a *asked, d Decision) {
			if !d.Allowed {
				return
			}
			admitted[a.key], admitted[""] = append(admitted[a.key], now), append(admitted[""], now)
			if a.asked < order[a.key] {
				rt.Fatalf("key %s: request %d was admitted after %d", a.key, a.asked, order[a.key])
			}
			order[a.key] = a.asked
		}
		run := func(until limiter.Time) {
			for {
				next := e.Turn(now)
				for _, a := range everybody {
					if a.w.held != nil && len(a.w.got) == 1 {
						a.w.held = nil
						note(a, a.w.got[0])
					}
				}
				if next > until {
					now = until
					return
				}
				now = next
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(rt, "requests") {
			run(now.Add(time.Duration(rapid.Int64Range(0, 100).Draw(rt, "pause")) * time.Millisecond))
			a := &asked{key: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"), asked: i}
			everybody = append(everybody, a)
			if d, waits := a.w.decide(e, request("/", "X-Key", a.key), now); !waits {
				a.w.got = []Decision{d}
				note(a, d)
			} else if rapid.IntRange(0, 9).Draw(rt, "goes away") == 0 {
				a.w.held.Cancel()
				a.w.held, a.w.got = nil, []Decision{{}}
			}
		}
		run(now.Add(2 * time.Second))
		for i, a := range everybody {
			if len(a.w.got) != 1 {
				rt.Fatalf("request %d was answered %d times", i, len(a.w.got))
			}
		}
		for key, times := range admitted {
			r, b := rate, burst
			if key == "" {
				r, b = 2*rate, 2*burst
			}
			for i := range times {
				for j := i; j < len(times); j++ {
					if n, may := j-i+1, float64(b)+float64(r)*times[j].Sub(times[i]).Seconds()+1e-6; float64(n) > may {
						rt.Fatalf("key %q: %d admitted in %v, at most %v", key, n, times[j].Sub(times[i]), may)
					}
				}
			}
		}
	})
}

func BenchmarkDecideWhereNobodyWaits(b *testing.B) {
	e := New(Options{})
	apply(b, e, start, snapshot("v1", delaying(limit("all", 1_000_000_000, 1_000_000_000), time.Second)), part("all", 1, 1))
	r := &Request{Method: "GET", Path: "/", Header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		if d := e.Decide(r, start); !d.Allowed {
			b.Fatal(fmt.Sprint(d))
		}
	}
}
