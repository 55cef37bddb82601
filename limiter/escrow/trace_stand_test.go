// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

// standing is a stage of pods that nobody has asked for a while, and where tokens stand by.
func standing(t *testing.T, pods int, l escrow.Limit) *stage {
	t.Helper()
	st := newStage(t, l, escrow.Recovery{Epoch: 1, First: true})
	st.stand = true
	for i := range pods {
		st.join(fmt.Sprint(i), 1)
	}
	st.pass(3 * sec)
	return st
}

func TestTheFirstRequestOfAnIdlePodWaitsForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		pods  int
		limit escrow.Limit
		want  int64
	}{
		"one pod has a quarter":                     {1, limit(1000, 100), 25},
		"ten pods have a quarter together":          {10, limit(1000, 100), 2},
		"a small burst has one for each":            {2, limit(1, 5), 1},
		"an hourly limit has one for each, no more": {2, escrow.Limit{Requests: 20, Period: uint64(3600 * sec), Burst: 20}, 1},
		"a request that costs more":                 {2, escrow.Limit{Requests: 1, Period: uint64(sec), Burst: 20, MaxCost: 4}, 4},
		"half a burst is too small for all":         {4, limit(1, 5), 0},
		"a key lives on what is awake of its share": {1, escrow.Limit{Requests: 1000, Period: uint64(sec), Burst: 100, Keyed: true}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			st := standing(t, c.pods, c.limit)
			for _, p := range st.procs {
				if n := p.h.Available(st.now); n != c.want {
					t.Errorf("pod %s has %d tokens at hand, not %d", p.id, n, c.want)
				}
			}
		})
	}
}

func TestWhatStandsByIsReplacedOnceItIsSpent(t *testing.T) {
	st := standing(t, 2, limit(10, 20))
	for range 10 {
		if !st.procs[0].h.Take(1, st.now) {
			t.Fatal("a request that comes twice a second finds nothing at hand")
		}
		st.procs[0].h.Arrive(1, st.now)
		st.pass(500 * ms)
	}
}

func TestWhatStandsByIsCalledBackForWhoIsShort(t *testing.T) {
	st := standing(t, 5, limit(1, 20))
	a := st.procs[0]
	var taken int64
	for range 40 {
		a.h.Queue(1, 1)
		st.pass(10 * ms)
		if a.h.Take(1, st.now) {
			taken++
		}
	}
	if taken != 20 {
		t.Errorf("a pod admitted %d of a burst of 20, the others have %d, %d, %d, %d", taken, st.procs[1].h.Available(st.now),
			st.procs[2].h.Available(st.now), st.procs[3].h.Available(st.now), st.procs[4].h.Available(st.now))
	}
}

func TestNothingStandsByWhileThePoolIsLow(t *testing.T) {
	st := newStage(t, limit(1, 40), escrow.Recovery{Epoch: 1})
	st.stand = true
	a, _ := st.join("a", 1), st.join("b", 1)
	st.pass(15 * sec)
	if n := a.h.Available(st.now); n != 0 {
		t.Errorf("%d tokens stand by while %d of 40 are in the pool", n, st.pool())
	}
	st.pass(15 * sec)
	if n := a.h.Available(st.now); n == 0 {
		t.Errorf("nothing stands by while %d of 40 are in the pool", st.pool())
	}
}

func TestAPodThatDrainsKeepsNothingStandingBy(t *testing.T) {
	st := standing(t, 2, limit(1000, 100))
	a := st.procs[0]
	a.s.Drain()
	st.pass(sec)
	if n := a.h.Available(st.now); n != 0 {
		t.Errorf("a pod that drains has %d tokens standing by", n)
	}
}

func TestPodsThatNobodyAsksSayNothingButThatTheyAreThere(t *testing.T) {
	st := standing(t, 3, limit(1000, 100))
	for range 5000 {
		st.now += ms
		for _, p := range st.procs {
			if b, ok := p.s.Beat(st.now); ok {
				st.fleet.Beat(p.id, b, st.now)
			}
			if at, ok := p.h.Next(st.now); ok {
				t.Fatalf("pod %s would be looked after in %d ns", p.id, at-st.now)
			}
			if c, ok := p.h.Claim(st.now); ok {
				t.Fatalf("pod %s says %+v", p.id, c)
			}
		}
		st.fleet.Flush(st.now, func(id string, o escrow.Order) { st.proc(id).s.Order(o, st.now) })
		st.mint.Lend(st.now, func(id string, l escrow.Loan) { t.Fatalf("the leader lends %s %+v", id, l) })
	}
}

func TestAPodThatIsShortIsToldThatThereIsNone(t *testing.T) {
	st := newStage(t, escrow.Limit{Requests: 1, Period: uint64(3600 * sec), Burst: 4}, escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.join("b", 1)
	for range 8 {
		a.h.Queue(1, 1)
		st.pass(10 * ms)
		a.h.Take(1, st.now)
	}
	a.h.Queue(0, 0)
	st.pass(sec)
	ask := func() (told int) {
		c := a.h.Registration(st.now)
		c.Want, c.Idle = c.Granted+1, false
		st.mint.Claim("a", c, st.now)
		st.mint.Lend(st.now, func(_ string, l escrow.Loan) {
			if told++; l.Granted != c.Granted || !l.Scarce {
				t.Errorf("told %+v by a pool that is empty", l)
			}
		})
		st.now += 10 * ms
		return told
	}
	if n := ask(); n != 1 {
		t.Errorf("told %d times: requests are held for nothing", n)
	}
	if n := ask() + ask(); n != 0 {
		t.Errorf("told %d times more at once", n)
	}
	st.now += sec
	if n := ask(); n != 1 {
		t.Errorf("told %d times after a while", n)
	}
}

func TestNobodyIsToldThatThereIsNoneWhileWhatStandsByMayComeBack(t *testing.T) {
	st := standing(t, 5, limit(1, 20))
	a := st.procs[0]
	st.procs = st.procs[:1] // the others are slow to answer
	for range 20 {
		a.h.Queue(1, 1)
		st.pass(10 * ms)
		a.h.Take(1, st.now)
	}
	st.now += sec
	c := a.h.Registration(st.now)
	c.Want, c.Idle = c.Granted+1, false
	st.mint.Claim("a", c, st.now)
	st.mint.Lend(st.now, func(id string, l escrow.Loan) {
		if id == "a" {
			t.Errorf("told %+v while the others have tokens that stand by", l)
		}
	})
}
