// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"testing"
	"time"
)

func TestAllTakesFromEveryLimiterOrFromNone(t *testing.T) {
	global := newBucket(t, 0, PerSecond(10), 3*Token, Full)
	perKey := newKeyed(t, 0, PerSecond(1), 2*Token, Full, 100)
	ask := func(at Time, key uint64) (Decision, [2]Charge) {
		parts := [2]Charge{global.Charge(1), perKey.Charge(key, 1)}
		return AllAt(at, parts[:]), parts
	}
	for i, want := range []Decision{
		{Allowed: true, Remaining: 1 * Token, Limit: 2 * Token},
		{Allowed: true, Remaining: 0, Limit: 2 * Token},
		{Allowed: false, Remaining: 0, Limit: 2 * Token, RetryAfter: time.Second},
	} {
		if got, _ := ask(0, 1); got != want {
			t.Errorf("request %d: got %+v, want %+v", i, got, want)
		}
	}
	if got := global.PeekAt(0, 1).Remaining; got != 1*Token {
		t.Errorf("a refusal by the key left %v of 1 in the global bucket", got)
	}
	if got, _ := ask(0, 2); !got.Allowed || got.Remaining != 0 || got.Limit != 3*Token {
		t.Errorf("got %+v", got)
	}
	got, parts := ask(0, 3)
	if got.Allowed || got.RetryAfter != 100*time.Millisecond {
		t.Errorf("got %+v", got)
	}
	if parts[0].Decision.Allowed || !parts[1].Decision.Allowed || parts[1].Decision.Remaining != 2*Token {
		t.Errorf("got %+v", parts)
	}
	if n := perKey.LenAt(0); n != 2 {
		t.Errorf("a refusal by the global bucket left %d keys, want 2", n)
	}
}

func TestAllWithTheSameLimiterTwiceTakesBothCosts(t *testing.T) {
	b := newBucket(t, 0, PerSecond(1), 3*Token, Full)
	k := newKeyed(t, 0, PerSecond(1), 3*Token, Full, 10)
	for _, want := range []bool{true, false} {
		parts := []Charge{b.Charge(1), k.Charge(7, 1), b.Charge(1), k.Charge(7, 1)}
		if got := AllAt(0, parts); got.Allowed != want {
			t.Fatalf("got %+v", got)
		}
	}
	if got := b.PeekAt(0, 1).Remaining; got != 1*Token {
		t.Errorf("bucket has %v left", got)
	}
	if got := k.PeekHashAt(0, 7, 1).Remaining; got != 1*Token {
		t.Errorf("key has %v left", got)
	}
	if !b.AllowAt(0, 1) || !k.TakeHashAt(0, 7, 1).Allowed {
		t.Error("a bucket was left owned")
	}
}

func TestAllInAnOverfullStoreNeverWaitsForItself(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), 3*Token, Full, 1)
	for i := range uint64(200) {
		AllAt(0, []Charge{k.Charge(i, 1), k.Charge(i+1, 1), k.Charge(i+2, 1), k.Charge(i, 1)})
	}
	if k.Strict() == 0 {
		t.Error("the store was not overfull")
	}
}

func TestAllOfNothingIsAllowed(t *testing.T) {
	if got := AllAt(0, nil); got != (Decision{Allowed: true}) {
		t.Errorf("got %+v", got)
	}
}

func TestAllChargesEveryKeyThatSharesABucket(t *testing.T) {
	k := newKeyed(t, 0, Rate{}, 5*Token, Full, 1)
	k.stripes = k.stripes[:1]
	for i := uint64(0); k.Strict() == 0; i++ {
		k.TakeHashAt(0, i, 1)
	}
	if d := AllAt(0, []Charge{k.Charge(1000, 1), k.Charge(1001, 2)}); !d.Allowed {
		t.Fatalf("got %+v", d)
	}
	if got := k.PeekHashAt(0, 1002, 0).Remaining; got != 1*Token {
		t.Errorf("the shared bucket has %v left, want 1", got)
	}
	if d := AllAt(0, []Charge{k.Charge(1000, 1), k.Charge(1001, 1)}); d.Allowed {
		t.Errorf("two costs were taken from one token: %+v", d)
	}
}
