// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"
)

// Each test stops a decision between reading and swapping and lets something else happen there.

func TestADecisionOvertakenByAReconfigurationIsMadeAnew(t *testing.T) {
	b := newBucket(t, 0, PerSecond(1), 5*Token, Full)
	n := b.nums.Load()
	l, _ := n.at(0)
	m, ok := l.take(0, price(3))
	if err := b.ReconfigureAt(0, PerSecond(1), 2*Token, AsEarned); err != nil {
		t.Fatal(err)
	}
	if b.commit(n, 0, m) || !ok {
		t.Error("three tokens were granted by the former burst after the reconfiguration had returned")
	}
	if got := b.PeekAt(0, 0).Remaining; got != 2*Token {
		t.Errorf("undoing left %v of 2", got)
	}
}

func TestADecisionOnAKeyOvertakenByAReconfigurationIsMadeAnew(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), 5*Token, Full, 10)
	k.TakeHashAt(0, 7, 1)
	p := k.place(7)
	n := k.nums.Load()
	l, _ := n.at(0)
	g, i := k.find(p)
	w := g.word[i].Load()
	m, ok := l.take(w, price(3))
	if err := k.ReconfigureAt(0, PerSecond(1), 2*Token, AsEarned); err != nil {
		t.Fatal(err)
	}
	if k.commit(n, g, i, p.print, w, m) || !ok {
		t.Error("three tokens were granted by the former burst after the reconfiguration had returned")
	}
	if got := k.PeekHashAt(0, 7, 0).Remaining; got != 2*Token {
		t.Errorf("undoing left %v of 2", got)
	}
	at, _ := k.free(k.place(8), l)
	if k.own(n, at) != busy || k.groups[at.group].word[at.slot].Load() != at.word {
		t.Error("a slot was entered by numbers that had been replaced")
	}
}

func TestADecisionOnASlotThatWasGivenToAnotherKeyIsMadeAnew(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), 5*Token, Full, 10)
	k.TakeHashAt(0, 7, 1)
	p := k.place(7)
	n := k.nums.Load()
	l, _ := n.at(0)
	g, i := k.find(p)
	w := g.word[i].Load()
	m, _ := l.take(w, price(1))
	g.print[i].Store(k.place(8).print) // with the same word, which is the worst case
	if k.commit(n, g, i, p.print, w, m) {
		t.Error("a key's cost was taken from another key's bucket, so it was never taken from its own")
	}
	if got := g.word[i].Load(); got != w {
		t.Errorf("undoing left the other key at %d, want %d", got, w)
	}
}

func TestAnUndoThatComesAfterAnotherTakingStaysOnTheStrictSide(t *testing.T) {
	b := newBucket(t, 0, PerSecond(1), 5*Token, Full)
	b.AllowAt(0, 1)
	w := b.word.Load()
	m := w + price(1)
	b.word.Store(m)
	b.AllowAt(0, 1)
	undo(&b.word, m, w)
	if got := b.PeekAt(0, 0).Remaining; got != 2*Token {
		t.Errorf("%v left, want 2", got)
	}
}

func TestAClockThatIsReadBeforeAKeyIsForgottenDoesNotFindItFull(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), 5*Token, Full, 1)
	k.TakeHashAt(0, 7, 5)
	// Key 7 is full again after 5 s and gives way to another.
	for i := uint64(1000); ; i++ {
		k.TakeHashAt(5*second, i, 5)
		if g, _ := k.find(k.place(7)); g == nil {
			break
		}
	}
	late := second / 2
	if d := k.TakeHashAt(late, 8, 1); k.Strict() > 0 || !d.Allowed && d.Remaining == 0 {
		t.Fatal("the store is full, so that it cannot show what it forgot")
	}
	if d := k.TakeHashAt(late, 7, 1); d.Allowed || d.Remaining > Token/2 {
		t.Errorf("a decision that read the clock at %v s found %v", late.Sub(0).Seconds(), d.Remaining)
	}
}

func TestMarksAreShiftedBackAThousandTimesWithoutLoss(t *testing.T) {
	r, _ := NewRate(2_099_999_999_999, 3*time.Second)
	b := newBucket(t, 0, r, MaxBurst, 0)
	model := newIdeal(0, r, MaxBurst, 0)
	at := Time(0)
	for range 3000 {
		at += 700_000_001
		all := b.PeekAt(at, 0).Remaining.Whole()
		if !b.AllowAt(at, all) {
			t.Fatalf("at %d refused what remained", at)
		}
		model.take(at, all)
	}
	behind := model.balance(at)
	behind.Sub(behind, rat(int64(b.PeekAt(at, 0).Remaining)))
	if behind.Sign() < 0 || behind.Cmp(rat(1)) >= 0 {
		t.Errorf("%s millionths behind", behind.FloatString(3))
	}
}
