// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// together runs f in several goroutines at once and waits for them.
func together(n int, f func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestWhatAllTakesUnderConcurrencyIsTakenFromEveryPartAndNothingElseIs(t *testing.T) {
	// Nothing is earned, so at the end each bucket lacks exactly what was granted, whatever was refused and undone in
	// between.
	const keys, workers, rounds = 8, 4, 3000
	global := newBucket(t, 0, Rate{}, 9000*Token, Full)
	second := newBucket(t, 0, Rate{}, 7000*Token, Full)
	perKey := newKeyed(t, 0, Rate{}, 1200*Token, Full, 100)
	var both, one [keys]atomic.Uint64
	var fromGlobal, fromSecond atomic.Uint64
	together(workers, func(worker int) {
		rng := rand.New(rand.NewPCG(uint64(worker), 1))
		parts := make([]Charge, 3)
		for range rounds {
			key, cost := rng.Uint64N(keys), rng.Uint64N(3)+1
			switch rng.IntN(4) {
			case 0:
				if perKey.TakeHashAt(0, key, cost).Allowed {
					one[key].Add(cost)
				}
			default:
				parts[0], parts[1], parts[2] = global.Charge(cost), perKey.Charge(key, cost), second.Charge(1)
				// Different orders would wait for each other in a circle if any waited while owning.
				rng.Shuffle(3, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
				if AllAt(0, parts).Allowed {
					both[key].Add(cost)
					fromGlobal.Add(cost)
					fromSecond.Add(1)
				}
			}
		}
	})
	left := func(b *TokenBucket) uint64 { return b.PeekAt(0, 0).Remaining.Whole() }
	if got, want := left(global), 9000-fromGlobal.Load(); got != want {
		t.Errorf("the first bucket has %d left, want %d", got, want)
	}
	if got, want := left(second), 7000-fromSecond.Load(); got != want {
		t.Errorf("the second bucket has %d left, want %d", got, want)
	}
	refused := false
	for key := range both {
		got := perKey.PeekHashAt(0, uint64(key), 0).Remaining.Whole()
		if want := 1200 - both[key].Load() - one[key].Load(); got != want {
			t.Errorf("key %d has %d left, want %d", key, got, want)
		}
		refused = refused || got == 0
	}
	if left(global) != 0 && !refused {
		t.Error("nothing was refused, so nothing was tried")
	}
}

func TestNoGoroutineTakesByNumbersThatHaveBeenReplaced(t *testing.T) {
	// A share is closed while others take from it. From the moment that closing it has returned nothing more may be
	// taken, also by a decision that had begun before: its mark never rises again (it may fall, when such a decision
	// undoes its swap), and accounts for all that was granted.
	const burst = 300
	for round := range 400 {
		b := newBucket(t, 0, Rate{}, burst*Token, Full)
		k := newKeyed(t, 0, Rate{}, burst*Token, Full, 10)
		var fromBucket, fromKey atomic.Uint64
		var bucketMark, keyMark uint64
		together(3, func(worker int) {
			if worker == 0 {
				for range round {
					fromBucket.Load()
				}
				_ = b.ReconfigureAt(0, Rate{}, 0, AsEarned)
				bucketMark = settled(&b.word)
				_ = k.ReconfigureAt(0, Rate{}, 0, AsEarned)
				keyMark = settled(k.wordOf(7))
				return
			}
			for i := range 100 {
				if i%2 == 0 {
					parts := [2]Charge{k.Charge(7, 1), b.Charge(1)}
					if AllAt(0, parts[:]).Allowed {
						fromBucket.Add(1)
						fromKey.Add(1)
					}
				}
				if b.AllowAt(0, 1) {
					fromBucket.Add(1)
				}
				if k.TakeHashAt(0, 7, 1).Allowed {
					fromKey.Add(1)
				}
			}
		})
		check := func(name string, closed, end, granted uint64) {
			if end > closed && closed != 0 {
				t.Errorf("%s: the mark rose by %d after closing", name, end-closed)
			}
			if end == 0 {
				end = origin - price(burst)
			}
			if taken := end - (origin - price(burst)); taken < price(granted) {
				t.Errorf("%s: granted %d, but took %v", name, granted, Tokens(taken))
			}
		}
		check("bucket", bucketMark, b.word.Load(), fromBucket.Load())
		check("key", keyMark, k.wordOf(7).Load(), fromKey.Load())
	}
}

// wordOf is the word of a key that is given by its hash, one of zero if it has none.
func (k *Keyed) wordOf(hash uint64) *atomic.Uint64 {
	if g, i := k.find(k.place(hash)); g != nil {
		return &g.word[i]
	}
	return new(atomic.Uint64)
}

// settled is a mark once no All decision owns it.
func settled(word *atomic.Uint64) uint64 {
	for try := 0; ; try++ {
		if w := word.Load(); w < held {
			return w
		}
		pause(try)
	}
}

func TestNothingIsTakenByFormerNumbersOnceAReconfigurationHasReturned(t *testing.T) {
	const burst = 1_000_000 * Token
	b := newBucket(t, 0, PerSecond(1_000_000), burst, Full)
	var now atomic.Int64
	var done atomic.Uint64 // decisions
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			at := Time(now.Load())
			b.AllowAt(at, 1)
			b.TakeAt(at, 1)
			done.Add(1)
		}
	}()
	for range 500 {
		at := Time(now.Load())
		if err := b.ReconfigureAt(at, PerSecond(1_000_000), 0, AsEarned); err != nil {
			t.Fatal(err)
		}
		after := b.word.Load() // what decisions under way swap from here on they take back
		for begun, try := done.Load(), 0; done.Load() < begun+2; try++ {
			pause(try)
		}
		if w := b.word.Load(); w > after {
			t.Fatalf("%v was taken from a bucket without a burst", Tokens(w-after))
		}
		if err := b.ReconfigureAt(at, PerSecond(1_000_000), burst, AsEarned); err != nil {
			t.Fatal(err)
		}
		now.Add(int64(second))
	}
}

func TestReconfiguringUnderLoadMintsNothing(t *testing.T) {
	// The burst goes up and down and marks are shifted back all the time, while nothing is earned: what is granted in
	// all is at most what there was.
	b := newBucket(t, 0, Rate{}, 5000*Token, Full)
	k := newKeyed(t, 0, Rate{}, 500*Token, Full, 20)
	var fromBucket atomic.Int64
	var fromKey [16]atomic.Int64
	together(4, func(worker int) {
		rng := rand.New(rand.NewPCG(uint64(worker), 2))
		for i := range 3000 {
			key := rng.Uint64N(16)
			switch {
			case worker == 0 && i%4 == 0:
				_ = b.ReconfigureAt(0, Rate{}, Tokens(4000+rng.Int64N(4000))*Token, AsEarned)
				_ = k.ReconfigureAt(0, Rate{}, Tokens(400+rng.Int64N(400))*Token, AsEarned)
			case worker == 1:
				parts := [2]Charge{b.Charge(1), k.Charge(key, 1)}
				if AllAt(0, parts[:]).Allowed {
					fromBucket.Add(1)
					fromKey[key].Add(1)
				}
			default:
				if b.AllowAt(0, 2) {
					fromBucket.Add(2)
				}
				if k.TakeHashAt(0, key, 1).Allowed {
					fromKey[key].Add(1)
				}
			}
		}
	})
	if got := fromBucket.Load(); got > 5000 {
		t.Errorf("granted %d of 5000", got)
	}
	for key := range fromKey {
		if got := fromKey[key].Load(); got > 500 {
			t.Errorf("granted %d of 500 to key %d", got, key)
		}
	}
}

func TestNewKeysUnderConcurrencyGetOneBucketEach(t *testing.T) {
	// Each key has one token for ever. More keys than slots, so that slots are moved and shared, and each key is asked
	// for by all goroutines at once.
	const keys = 4000
	for _, size := range []int{keys, keys / 2} {
		k := newKeyed(t, 0, Rate{}, Token, Full, size)
		var granted [keys]atomic.Int64
		together(4, func(worker int) {
			for i := range keys {
				if k.TakeHashAt(0, uint64(i), 1).Allowed {
					granted[i].Add(1)
				}
				if j := (i * 31) % keys; worker%2 == 0 {
					parts := [1]Charge{k.Charge(uint64(j), 1)}
					if AllAt(0, parts[:]).Allowed {
						granted[j].Add(1)
					}
				}
			}
		})
		for key := range granted {
			if got := granted[key].Load(); got > 1 {
				t.Fatalf("key %d was granted %d of 1", key, got)
			}
		}
	}
}

func TestMarksShiftedBackUnderLoadKeepTheLaw(t *testing.T) {
	// At the highest rate the marks are shifted back every two seconds; each goroutine leaps on by a second. Whoever is
	// late earns nothing.
	r, _ := NewRate(MaxRate, 1000*1000*1000)
	b := newBucket(t, 0, r, 1000*Token, Full)
	k := newKeyed(t, 0, r, 1000*Token, Full, 50)
	var now, fromBucket, fromKey atomic.Int64
	const leaps = 500
	together(4, func(worker int) {
		for {
			at := now.Load()
			if at > leaps {
				return
			}
			if worker == 0 {
				now.Add(1)
			}
			if b.AllowAt(Time(at)*second, 1000) {
				fromBucket.Add(1)
			}
			for key := range uint64(20) {
				if k.TakeHashAt(Time(at)*second, key, 1000).Allowed {
					fromKey.Add(1)
				}
			}
		}
	})
	// One burst at each instant that was asked for.
	if got := fromBucket.Load(); got > leaps+1 {
		t.Errorf("granted %d bursts in %d instants", got, leaps+1)
	}
	if got := fromKey.Load(); got > 20*(leaps+1) {
		t.Errorf("granted %d bursts to 20 keys in %d instants", got, leaps+1)
	}
}
