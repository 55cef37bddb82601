// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

func TestABurstThatIsLoweredAndRaisedAgainFillsNothing(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	st.join("a", 1)
	other := st.fleet.Account(st.now) // nobody touches it between the edits
	st.pass(2 * sec)
	if st.pool() != 400 {
		t.Fatalf("the pool holds %d of a burst of 400", st.pool())
	}
	st.fleet.Edit(limit(1, 40), st.now)
	st.fleet.Edit(limit(1, 400), st.now)
	st.pass(100 * ms)
	for _, m := range []*escrow.Mint{st.mint, other} {
		if n := m.Pool(st.now) / escrow.Micro; n > 40 {
			t.Errorf("%d tokens survived a burst of 40", n)
		}
	}
}

func TestALoweredBurstEmptiesTheShareOfAnIsolatedPodForGood(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1})
	a := st.join("a", 1)
	st.pass(100 * ms)
	a.deaf, a.mute = true, true
	st.now += 10 * sec
	if n := a.h.Available(st.now); n != 100 {
		t.Fatalf("the share of an isolated pod holds %d", n)
	}
	a.s.Order(escrow.Order{Epoch: 1, Seq: 100, Limit: limit(100, 40), Units: escrow.Whole}, st.now)
	a.s.Order(escrow.Order{Epoch: 1, Seq: 101, Limit: limit(100, 400), Units: escrow.Whole}, st.now)
	if n := a.h.Available(st.now); n > 10 {
		t.Errorf("%d tokens survived a burst of 40", n)
	}
}

func TestOldNumbersCountAsInUseUntilEveryPodHasAcknowledged(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a, _ := st.join("a", 1), st.join("b", 1)
	st.pass(100 * ms)
	a.deaf = true
	st.fleet.Edit(limit(100, 40), st.now)
	st.pass(sec)
	if st.fleet.Settled() {
		t.Error("a pod that acts on the old numbers is not counted")
	}
	a.deaf = false
	st.pass(sec)
	if !st.fleet.Settled() {
		t.Error("all pods have acknowledged, and the old numbers still count as in use")
	}
}

func TestWhatIsLentUnderALargerBurstHoldsBackTheSmallerOne(t *testing.T) {
	st := newStage(t, limit(1_000_000, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 90)
	a.mute = true
	st.fleet.Edit(limit(1_000_000, 80), st.now)
	st.now += sec
	if st.pool() != 0 || st.fleet.Settled() {
		t.Errorf("%d tokens are in the pool of a burst of 80, of which 90 are lent", st.pool())
	}
}

func TestALargerBurstAddsRoomAndNoTokens(t *testing.T) {
	st := newStage(t, limit(1, 40), escrow.Recovery{Epoch: 1, First: true})
	st.join("a", 1)
	st.pass(100 * ms)
	before := st.pool()
	st.fleet.Edit(limit(1, 4000), st.now)
	if st.pool() > before {
		t.Errorf("a larger burst filled the pool from %d to %d", before, st.pool())
	}
	st.pass(20 * sec)
	if n := st.pool(); n < before+19 {
		t.Errorf("a larger burst has no room: %d after 20 s at 1 per second", n)
	}
}
