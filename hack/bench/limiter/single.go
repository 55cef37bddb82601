// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/headgate/headgate/limiter"
)

// must panics on errors of setting up; all arguments are constants.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// repeated is a contender whose goroutines share one operation.
func repeated(name string, l loop) contender {
	return contender{name, func(int) loop { return l }}
}

const plenty = 1_000_000_000 // tokens per second and burst of a limit that always grants

// singleKey are the contests over one limit.
func singleKey() []contest {
	two := runtime.NumCPU()
	if two > 2 {
		two = 2
	}
	return []contest{
		{name: "hot limit, granted, 2 processors", unit: "ns", procs: two, goal: 4, ratio: 8, contenders: append(peersOfOne(true), striped())},
		{name: "hot limit, granted, 1 processor", unit: "ns", procs: 1, contenders: append(peersOfOne(true), striped())},
		{name: "one limit, exact at every request, 1 processor", unit: "ns", procs: 1, goal: 12, contenders: append(peersOfOne(true), exact(true))},
		{name: "one limit, exact at every request, 2 processors", unit: "ns", procs: two, contenders: append(peersOfOne(true), exact(true))},
		{name: "one limit, refused, 1 processor", unit: "ns", procs: 1, contenders: append(peersOfOne(false), exact(false))},
		{name: "one limit, refused, 2 processors", unit: "ns", procs: two, contenders: append(peersOfOne(false), exact(false))},
	}
}

func striped() contender {
	b := must(limiter.NewStripedBucket(limiter.PerSecond(plenty), plenty*limiter.Token))
	return repeated(ours, func(n int) {
		for range n {
			b.Allow(1)
		}
	})
}

func exact(grants bool) contender {
	b := must(limiter.NewTokenBucket(limiter.PerSecond(plenty), plenty*limiter.Token))
	if !grants {
		b = must(limiter.NewTokenBucket(limiter.PerHour(1), limiter.Token))
	}
	return repeated(ours, func(n int) {
		for range n {
			b.AllowAt(limiter.FastNow(), 1)
		}
	})
}

// peersOfOne are the other libraries with one limit that grants all or, after the first, nothing.
func peersOfOne(grants bool) []contender {
	per, burst, period := plenty, plenty, time.Second
	if !grants {
		per, burst, period = 1, 1, time.Hour
	}
	ctx := context.Background()
	xtime := rate.NewLimiter(rate.Limit(float64(per)/period.Seconds()), burst)
	jujus := ratelimit.NewBucketWithRate(float64(per)/period.Seconds(), int64(burst))
	throttle := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), throttled.RateQuota{MaxRate: throttled.PerDuration(per, period), MaxBurst: burst - 1}))
	sethvargo := must(memorystore.New(&memorystore.Config{Tokens: uint64(per), Interval: period}))
	ulules := ulule.New(ululestore.NewStore(), ulule.Rate{Period: period, Limit: int64(per)})
	bursty := ratelimiter.NewBursty[any](uint(per), period)
	peers := []contender{
		repeated("x/time/rate", func(n int) {
			for range n {
				xtime.Allow()
			}
		}),
		repeated("juju/ratelimit", func(n int) {
			for range n {
				jujus.TakeAvailable(1)
			}
		}),
		repeated("throttled", func(n int) {
			for range n {
				_, _, _ = throttle.RateLimitCtx(ctx, "key", 1)
			}
		}),
		repeated("sethvargo/go-limiter", func(n int) {
			for range n {
				_, _, _, _, _ = sethvargo.Take(ctx, "key")
			}
		}),
		repeated("ulule/limiter", func(n int) {
			for range n {
				_, _ = ulules.Get(ctx, "key")
			}
		}),
		repeated("failsafe-go (bursty)", func(n int) {
			for range n {
				bursty.TryAcquirePermit()
			}
		}),
	}
	if grants {
		// It only waits; at this rate it never has to.
		slack := uber.New(plenty)
		peers = append(peers, repeated("uber/ratelimit", func(n int) {
			for range n {
				slack.Take()
			}
		}))
	}
	return peers
}

// floors are what the machine allows at best: no exact decision is faster than one reading of a clock and one swap.
func floors() []contest {
	var word atomic.Uint64
	return []contest{{name: "what the machine allows, 1 processor", unit: "ns", procs: 1, contenders: []contender{
		repeated("one compare-and-swap", func(n int) {
			for range n {
				w := word.Load()
				word.CompareAndSwap(w, w+1)
			}
		}),
		repeated("time.Now", func(n int) {
			for range n {
				_ = time.Now()
			}
		}),
		repeated("limiter.Now", func(n int) {
			for range n {
				limiter.Now()
			}
		}),
		repeated("limiter.FastNow", func(n int) {
			for range n {
				limiter.FastNow()
			}
		}),
		repeated("limiter.FastNow and one compare-and-swap", func(n int) {
			for range n {
				word.CompareAndSwap(word.Load(), uint64(limiter.FastNow()))
			}
		}),
	}}}
}
