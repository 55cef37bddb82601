// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/limiter"
)

// store is a limiter for many keys. Every key has a burst of a million and earns one an hour, so that all are granted and
// none is full again by its next request: who forgets full buckets has to keep all of them.
type store struct {
	name  string
	allow func(key string) bool
	bytes float64 // for each key
}

type stores []*store

const (
	keyLength = 15
	burst     = 1_000_000 // of each key
)

// keyInto writes the key of a number. It is the same work for all contenders.
func keyInto(b *[keyLength]byte, i int) {
	copy(b[:], "client-")
	for j := keyLength - 1; j >= 7; j-- {
		b[j] = byte('0' + i%10)
		i /= 10
	}
}

// view is the key as a string without copying it. No contender keeps a string that it is asked about, as all keys are
// in the stores from the beginning.
func view(b *[keyLength]byte) string { return unsafe.String(&b[0], keyLength) }

// buildStores makes all stores, fills each with all keys, and weighs it.
func buildStores(keys int) (stores, error) {
	ctx := context.Background()
	var kept *limiter.Keyed
	builders := []struct {
		name  string
		build func() func(string) bool
	}{
		{ours, func() func(string) bool {
			kept = must(limiter.NewKeyed(limiter.PerHour(1), burst*limiter.Token, keys))
			return allow(kept)
		}},
		{"x/time/rate in a map with RWMutex", func() func(string) bool {
			var mu sync.RWMutex
			m := map[string]*rate.Limiter{}
			return func(key string) bool {
				mu.RLock()
				l := m[key]
				mu.RUnlock()
				if l == nil {
					mu.Lock()
					l = rate.NewLimiter(rate.Limit(1.0/3600), burst)
					m[string([]byte(key))] = l
					mu.Unlock()
				}
				return l.Allow()
			}
		}},
		{"x/time/rate in a sync.Map", func() func(string) bool {
			var m sync.Map
			return func(key string) bool {
				l, ok := m.Load(key)
				if !ok {
					l, _ = m.LoadOrStore(string([]byte(key)), rate.NewLimiter(rate.Limit(1.0/3600), burst))
				}
				return l.(*rate.Limiter).Allow()
			}
		}},
		{"throttled", func() func(string) bool {
			t := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: burst}))
			return func(key string) bool {
				limited, _, _ := t.RateLimitCtx(ctx, key, 1)
				return !limited
			}
		}},
		{"sethvargo/go-limiter", func() func(string) bool {
			s := must(memorystore.New(&memorystore.Config{Tokens: burst, Interval: 24 * time.Hour, SweepInterval: 24 * time.Hour, SweepMinTTL: 24 * time.Hour}))
			return func(key string) bool {
				_, _, _, ok, _ := s.Take(ctx, key)
				return ok
			}
		}},
		{"ulule/limiter", func() func(string) bool {
			u := ulule.New(ululestore.NewStoreWithOptions(ulule.StoreOptions{CleanUpInterval: 24 * time.Hour}), ulule.Rate{Period: 24 * time.Hour, Limit: burst})
			return func(key string) bool {
				c, err := u.Get(ctx, key)
				return err == nil && !c.Reached
			}
		}},
		{"hand-written: 64 maps with mutexes, GCRA", shardedMaps},
	}
	var all stores
	for _, b := range builders {
		before := heap()
		s := &store{name: b.name, allow: b.build()}
		for i := range keys {
			var buf [keyLength]byte
			keyInto(&buf, i)
			// A copy, as this time the stores keep the key.
			if !s.allow(string(buf[:])) {
				return nil, fmt.Errorf("%s refused key %d", s.name, i)
			}
		}
		s.bytes = float64(heap()-before) / float64(keys)
		all = append(all, s)
	}
	if n := kept.Len(); n < keys*98/100 || kept.Strict() > 0 {
		return nil, fmt.Errorf("%s has %d of %d keys, and %d decisions were taken from buckets that keys share", ours, n, keys, kept.Strict())
	}
	return all, nil
}

// allow asks a store of ours.
func allow(k *limiter.Keyed) func(key string) bool {
	return func(key string) bool { return k.AllowAt(limiter.FastNow(), key, 1) }
}

// shardedMaps is what a careful engineer writes without a library.
func shardedMaps() func(string) bool {
	type shard struct {
		mu  sync.Mutex
		tat map[string]int64
		_   [104]byte
	}
	var shards [64]shard
	for i := range shards {
		shards[i].tat = map[string]int64{}
	}
	seed, start := maphash.MakeSeed(), time.Now()
	const interval = int64(time.Hour)
	return func(key string) bool {
		s := &shards[maphash.String(seed, key)%64]
		now := int64(time.Since(start))
		s.mu.Lock()
		tat, ok := s.tat[key]
		next := max(tat, now) + interval
		allowed := next-now <= burst*interval
		if allowed && ok {
			s.tat[key] = next
		} else if allowed {
			s.tat[string([]byte(key))] = next
		}
		s.mu.Unlock()
		return allowed
	}
}

// heap is what is reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var memoryContest = contest{name: "memory per key", unit: "bytes", goal: 20, ratio: 3}

func (s stores) bytesPerKey(int) []figure {
	var all []figure
	for _, st := range s {
		all = append(all, figure{name: st.name, value: st.bytes})
	}
	return all
}

// contests are the contests over many keys.
func (s stores) contests(keys int) []contest {
	procs := min(runtime.NumCPU(), 2)
	uniform := func(r *rand.Rand) func() int { return func() int { return r.IntN(keys) } }
	zipf := func(r *rand.Rand) func() int {
		z := rand.NewZipf(r, 1.1, 1, uint64(keys-1))
		return func() int { return int(z.Uint64()) }
	}
	million := fmt.Sprintf("%d keys", keys)
	if keys == 1_000_000 {
		million = "1M keys"
	}
	return []contest{
		{name: million + ", uniform, 2 processors", unit: "ns", large: true, procs: procs, goal: 110, ratio: 2.5, contenders: s.contenders(uniform)},
		{name: million + ", uniform, 1 processor", unit: "ns", large: true, procs: 1, contenders: s.contenders(uniform)},
		{name: million + ", Zipf 1.1, 2 processors", unit: "ns", large: true, procs: procs, contenders: s.contenders(zipf)},
		{name: million + ", uniform, all of them full again by their next request, 2 processors", unit: "ns", large: true, procs: procs, contenders: s.forgetful(keys).contenders(uniform)},
		{name: "what the machine allows with " + million + ", 2 processors", unit: "ns", large: true, procs: procs, contenders: lines(keys).contenders(uniform)},
	}
}

// forgetful are the stores with one of ours that has forgotten each key by the time it is asked for again.
func (s stores) forgetful(keys int) stores {
	out := slices.Clone(s)
	for i, st := range out {
		if st.name == ours {
			out[i] = &store{name: ours, allow: allow(must(limiter.NewKeyed(limiter.PerSecond(1_000_000), burst*limiter.Token, keys)))}
		}
	}
	return out
}

// lines is the least that any store does: a key's hash, a clock, and one swap in memory as large as ours.
func lines(keys int) stores {
	words := make([][8]atomic.Uint64, keys*20/64)
	seed := maphash.MakeSeed()
	return stores{{name: "a hash, FastNow, and one compare-and-swap in 20 bytes for each key", allow: func(key string) bool {
		line, _ := bits.Mul64(maphash.String(seed, key), uint64(len(words)))
		w := &words[line][0]
		return w.CompareAndSwap(w.Load(), uint64(limiter.FastNow()))
	}}}
}

// granted keeps the compiler from dropping what nobody looks at.
var granted atomic.Int64

// contenders ask for keys in a sequence that is drawn beforehand.
func (s stores) contenders(draw func(*rand.Rand) func() int) []contender {
	var sequences [2][]int32
	for i := range sequences {
		next := draw(rand.New(rand.NewPCG(uint64(i), 1)))
		for range 1 << 20 {
			sequences[i] = append(sequences[i], int32(next()))
		}
	}
	var all []contender
	for _, st := range s {
		all = append(all, contender{st.name, func(worker int) loop {
			sequence := sequences[worker%2]
			at := 0
			return func(n int) {
				var buf [keyLength]byte
				sum := 0
				for range n {
					at = (at + 1) & (len(sequence) - 1)
					keyInto(&buf, int(sequence[at]))
					if st.allow(view(&buf)) {
						sum++
					}
				}
				granted.Add(int64(sum))
			}
		}})
	}
	return all
}
