// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

// earningBoth looks, in steps, for a moment in which the mint and an isolated process both earn the process's share.
func earningBoth(st *stage, p *proc, span int64) (woke bool) {
	st.t.Helper()
	for until := st.now + span; st.now < until; {
		before := st.mint.Pool(st.now)
		st.now += ms / 5
		st.talk()
		if st.mint.Pool(st.now) == before {
			continue
		}
		if p.s.Isolated(p.skew(st.now - ms/5)) {
			st.t.Fatalf("at %d us both the mint and the pod earn the pod's share", st.now/1000)
		}
	}
	return p.s.Isolated(p.skew(st.now))
}

func TestAShareIsNotEarnedTwiceByAFastPodAndASlowLeaderWhenTheyLoseEachOther(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	p.skew = func(t int64) int64 { return t + t/500 } // as seen from the leader, both clocks are off by 0.1 %
	st.pass(100 * ms)
	if p.s.Units() != escrow.Whole {
		t.Fatalf("the only pod has %d units", p.s.Units())
	}
	// The last promise comes at once, and the pod is frozen until it would wake.
	p.s.Order(escrow.Order{Epoch: 1, Sent: st.now}, p.skew(st.now))
	st.fleet.Beat("a", p.s.Hello(p.skew(st.now)), st.now)
	st.procs = nil
	if !earningBoth(st, p, 2*sec) {
		t.Error("the pod never woke: its share is lost while the leader is away")
	}
}

func TestAPromiseThatWasHeldUpIsNotReliedOnForLonger(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.s.Order(escrow.Order{Epoch: 1, Sent: st.now}, st.now)
	late := p.s.Hello(st.now)
	st.procs = nil
	st.now += 900 * ms
	st.fleet.Beat("a", late, st.now)
	earningBoth(st, p, 2*sec)
}

func TestTheLeaderDoesNotEarnTheTenthThatPodsEarnAllTheTime(t *testing.T) {
	l := limit(100, 400)
	l.Keyed = true
	st := newStage(t, l, escrow.Recovery{Epoch: 1})
	st.join("a", 1)
	st.pass(100 * ms)
	before := st.mint.Pool(st.now)
	st.pass(sec)
	if earned := (st.mint.Pool(st.now) - before) / escrow.Micro; earned < 89 || earned > 90 {
		t.Errorf("the leader earned %d of 100 tokens, of which the pod earns 10", earned)
	}
}

func TestAShareIsNotEarnedTwiceWhenOnlyThePodIsDeaf(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.deaf = true
	if !earningBoth(st, p, 3*sec) {
		t.Error("a pod that hears nothing starves: it promises to sleep for ever")
	}
}

func TestAShareIsNotEarnedTwiceWhenOnlyTheLeaderIsDeaf(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.mute = true
	if !earningBoth(st, p, 3*sec) {
		t.Error("a pod that is not heard starves: it promises to sleep for ever")
	}
}

func TestALeaderThatWasFrozenDoesNotEarnWhatThePodsEarnedMeanwhile(t *testing.T) {
	st := newStage(t, limit(10, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.deaf, p.mute = true, true
	before := st.mint.Pool(st.now)
	st.now += 20 * sec
	if earned := st.mint.Pool(st.now) - before; earned > 10*escrow.Micro {
		t.Errorf("the leader earned %d micro-tokens in 20 s of which the pod slept at most 1", earned)
	}
}

func TestANewPodStartsWithAnEmptyShare(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.deaf, p.mute = true, true
	st.now += sec + 100*ms
	if !p.s.Isolated(st.now) {
		t.Fatal("the pod sleeps")
	}
	if n := p.h.Available(st.now); n != 0 {
		t.Errorf("%d tokens came out of nothing", n)
	}
	if n := p.h.Available(st.now + 5*sec); n != 5 {
		t.Errorf("in 5 s of isolation the pod earned %d tokens, not 5", n)
	}
}

func TestAShareThatExistsDoesNotGrowAtOnceByWhatADeadPodHad(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a, _ := st.join("a", 1), st.join("b", 1)
	st.pass(5 * sec)
	if a.s.Units() != escrow.Whole/2 {
		t.Fatalf("one of two pods has %d units", a.s.Units())
	}
	st.procs = st.procs[:1]
	st.fleet.Gone("b", st.now)
	st.pass(4*sec - 50*ms) // burst over rate is 4 s
	if a.s.Units() != escrow.Whole/2 {
		t.Error("the share grew before the burst of the dead pod's share was over")
	}
	st.pass(100 * ms)
	if a.s.Units() != escrow.Whole {
		t.Errorf("the share never grew: %d units", a.s.Units())
	}
}

func TestAPodDoesNotAcknowledgeWhileAHeldRequestRestsOnTheLargerShare(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	p := st.join("a", 1)
	st.pass(100 * ms)
	p.deaf, p.mute = true, true
	st.now += 5 * sec
	hold, ok := p.h.Reserve(90, st.now)
	if !ok {
		t.Fatal("the share of an isolated pod is of no use")
	}
	l := limit(100, 40)
	o := escrow.Order{Epoch: 1, Sent: st.now, Seq: 100, Limit: l, Units: escrow.Whole}
	p.s.Order(o, st.now)
	if b, ok := p.s.Beat(st.now + ms); !ok || b.Acked >= o.Seq {
		t.Errorf("acknowledged %v, while 90 tokens of the larger share may still be spent", b.Acked)
	}
	p.h.Cancel(hold)
	if n := p.h.Available(st.now + ms); n > 10 {
		t.Errorf("%d tokens of the larger share outlived it", n)
	}
	if b, ok := p.s.Beat(st.now + sec); !ok || b.Acked != o.Seq {
		t.Errorf("acknowledged %v after the last decision on the larger share", b.Acked)
	}
}

func TestAKeyThatTheLeaderNeverHeardOfIsServedFromTheAwakeShare(t *testing.T) {
	l := limit(100, 200)
	l.Keyed = true
	st := newStage(t, l, escrow.Recovery{Epoch: 1})
	var p *proc
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		p = st.join(id, 1)
	}
	st.pass(5 * sec)
	key := p.s.Account(st.now)
	if n := key.Available(st.now); n != 2 {
		t.Errorf("an unseen key finds %d tokens, not a tenth of its part of the burst", n)
	}
	if st.pass(sec); key.Available(st.now) != 2 {
		t.Error("the awake share holds more than its burst")
	}
}
