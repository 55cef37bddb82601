// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func newKeyed(t testing.TB, at Time, r Rate, burst, level Tokens, keys int) *Keyed {
	t.Helper()
	k, err := NewKeyedAt(at, r, burst, level, keys)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysDoNotShareTokens(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), 2*Token, Full, 1000)
	for i := range 1000 {
		key := fmt.Sprint(i)
		for j, want := range []bool{true, true, false} {
			if got := k.AllowAt(0, key, 1); got != want {
				t.Fatalf("key %d, request %d: got %v", i, j, got)
			}
		}
	}
	if got := k.LenAt(0); got != 1000 {
		t.Errorf("got %d keys", got)
	}
	if got := k.LenAt(2 * second); got != 0 {
		t.Errorf("%d keys are not full after they had time to fill", got)
	}
	if k.Strict() != 0 {
		t.Errorf("%d decisions were strict in a store with room", k.Strict())
	}
	d := k.TakeAt(1500*second/1000, "7", 1)
	if want := (Decision{Allowed: true, Remaining: Token / 2, Limit: 2 * Token}); d != want {
		t.Errorf("got %+v, want %+v", d, want)
	}
	if got := k.PeekAt(1500*second/1000, "7", 1); got.RetryAfter != time.Second/2 {
		t.Errorf("got %+v", got)
	}
}

func TestAKeyHasTheSameHashAsStringAndBytes(t *testing.T) {
	k := newKeyed(t, 0, PerSecond(1), Token, Full, 1)
	if k.Hash("tenant-7") != k.HashBytes([]byte("tenant-7")) {
		t.Error("a key given as bytes would have a bucket of its own")
	}
}

func TestAnImpossibleStoreIsRefusedAtConstruction(t *testing.T) {
	if _, err := NewKeyed(PerSecond(1), Token, 0); !errors.Is(err, ErrKeys) {
		t.Errorf("got %v", err)
	}
	if _, err := NewKeyed(PerSecond(1), -1, 1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
	if err := newKeyed(t, 0, PerSecond(1), Token, Full, 1).Reconfigure(PerSecond(1), -1); !errors.Is(err, ErrBurst) {
		t.Errorf("got %v", err)
	}
}

func TestAFloodOfKeysGetsNoTokensBeyondTheSharedBuckets(t *testing.T) {
	// 20,000 keys on a store for 64: what finds no slot shares 16 buckets.
	k := newKeyed(t, 0, Rate{}, 2*Token, Full, 64)
	granted := 0
	for round := range 3 {
		for key := range uint64(20_000) {
			if k.TakeHashAt(Time(round), mix(key), 1).Allowed {
				granted++
			}
		}
	}
	if most := 2 * (len(k.groups)*slots + len(k.stripes)); granted > most {
		t.Errorf("granted %d, want at most %d", granted, most)
	}
	if k.Strict() == 0 {
		t.Error("the strict side was not counted")
	}
}

func TestAKeyThatWasServedFromASharedBucketOwesItWhenItGetsASlot(t *testing.T) {
	const keys = 200
	k := newKeyed(t, 0, PerSecond(1), 10*Token, Full, 16)
	law := make([]int, keys)
	for at := Time(0); at < 60*second; at += second / 8 {
		for key := range law {
			if k.TakeHashAt(at, uint64(key), 1).Allowed {
				law[key]++
			}
		}
	}
	for key, n := range law {
		if n > 10+60 {
			t.Errorf("key %d was granted %d in 60 s", key, n)
		}
	}
}
