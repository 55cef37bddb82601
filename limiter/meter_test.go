// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func newMeter(t rapid.TB, at Time, cir Rate, cbs, ebs Tokens) *Meter {
	t.Helper()
	m, err := NewMeterAt(at, cir, cbs, ebs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMeterColoursAsRFC2697Says(t *testing.T) {
	type packet struct {
		at           Time
		cost         uint64
		before, want Colour
	}
	traces := map[string][]packet{
		"colour-blind: green, then yellow, then red": {
			{0, 3, Green, Green}, {0, 1, Green, Yellow}, {0, 1, Green, Yellow}, {0, 1, Green, Red},
		},
		"what is earned goes to the committed bucket first": {
			{0, 3, Green, Green}, {0, 2, Green, Yellow}, {3 * second, 3, Green, Green}, {3 * second, 1, Green, Red},
			{7 * second, 3, Green, Green}, {7 * second, 1, Green, Yellow}, {7 * second, 1, Green, Red},
		},
		"a cost too large for the committed bucket is taken from the excess one whole": {
			{0, 2, Green, Green}, {0, 2, Green, Yellow}, {0, 1, Green, Green},
		},
		"colour-aware: nothing becomes better than it came": {
			{0, 1, Red, Red}, {0, 1, Yellow, Yellow}, {0, 3, Green, Green}, {0, 1, Yellow, Yellow}, {0, 1, Yellow, Red},
		},
		"a clock that jumps back earns nothing": {
			{10 * second, 3, Green, Green}, {5 * second, 2, Green, Yellow}, {5 * second, 1, Green, Red}, {10 * second, 1, Green, Red},
			{11 * second, 1, Green, Green},
		},
	}
	for name, trace := range traces {
		t.Run(name, func(t *testing.T) {
			m := newMeter(t, 0, PerSecond(1), 3*Token, 2*Token)
			for i, p := range trace {
				if got := m.MarkAt(p.at, p.cost, p.before); got != p.want {
					t.Errorf("packet %d: got %v, want %v", i, got, p.want)
				}
			}
		})
	}
}

func TestAMeterKeepsBothOfItsLawsAndWastesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, cbs, ebs := drawRate(t), drawBurst(t), drawBurst(t)
		m := newMeter(t, 0, rate, cbs, ebs)
		r := perNano(rate)
		// The meter of real numbers, following the colours given.
		committed, excess := rat(int64(cbs)), rat(int64(ebs))
		one := rat(2)
		at := Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d := drawStep(t, rate, cbs+ebs)
			at = at.Add(d)
			more := new(big.Rat).Mul(r, rat(int64(d)))
			committed.Add(committed, more)
			if over := new(big.Rat).Sub(committed, rat(int64(cbs))); over.Sign() > 0 {
				committed.SetInt64(int64(cbs))
				if excess.Add(excess, over).Cmp(rat(int64(ebs))) > 0 {
					excess.SetInt64(int64(ebs))
				}
			}
			c, e := m.BalanceAt(at)
			for name, pair := range map[string][2]*big.Rat{"committed": {rat(int64(c)), committed}, "excess": {rat(int64(e)), excess}} {
				if diff := new(big.Rat).Sub(pair[0], pair[1]); diff.Abs(diff).Cmp(one) > 0 {
					t.Fatalf("at %d the %s bucket has %s, want %s", at, name, pair[0].FloatString(3), pair[1].FloatString(3))
				}
			}
			cost := drawCost(t, c)
			switch m.MarkAt(at, cost, Green) {
			case Green:
				committed.Sub(committed, rat(int64(price(cost))))
			case Yellow:
				excess.Sub(excess, rat(int64(price(cost))))
			}
		}
	})
}

func TestReconfiguringAMeterMintsNothing(t *testing.T) {
	m := newMeter(t, 0, PerSecond(1), 3*Token, 2*Token)
	if err := m.ReconfigureAt(0, PerSecond(2), 9*Token, 1*Token); err != nil {
		t.Fatal(err)
	}
	if c, e := m.BalanceAt(0); c != 3*Token || e != 1*Token {
		t.Errorf("got %v and %v", c, e)
	}
	if c, e := m.BalanceAt(second); c != 5*Token || e != 1*Token {
		t.Errorf("got %v and %v", c, e)
	}
	if err := m.ReconfigureAt(0, PerSecond(2), -1, 0); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
	if _, err := NewMeter(PerSecond(1), 1, MaxBurst+1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
}

func TestColoursAreReadable(t *testing.T) {
	if Green.String() != "green" || Yellow.String() != "yellow" || Red.String() != "red" {
		t.Error("a colour has no name")
	}
}
