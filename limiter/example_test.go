// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/limiter"
)

func ExampleTokenBucket() {
	bucket, err := limiter.NewTokenBucket(limiter.PerSecond(100), 20*limiter.Token)
	if err != nil {
		panic(err)
	}
	d := bucket.Take(1)
	fmt.Println(d.Allowed, d.Remaining)
	// Output: true 19
}

// Time is a parameter: a test says when, and nothing sleeps.
func ExampleTokenBucket_TakeAt() {
	bucket, _ := limiter.NewTokenBucketAt(0, limiter.PerHour(5), 1*limiter.Token, limiter.Full)
	for _, at := range []time.Duration{0, 1 * time.Minute, 12 * time.Minute} {
		d := bucket.TakeAt(limiter.Time(at), 1)
		fmt.Println(at, d.Allowed, d.RetryAfter)
	}
	// Output:
	// 0s true 0s
	// 1m0s false 11m0s
	// 12m0s true 0s
}

// Half of a limit goes to another holder: what is held stays, clamped to the smaller burst.
func ExampleTokenBucket_Reconfigure() {
	rate, burst := limiter.PerSecond(1000), 200*limiter.Token
	bucket, _ := limiter.NewTokenBucketAt(0, rate, burst, limiter.Full)
	_ = bucket.ReconfigureAt(0, rate.Part(1, 3), burst.Part(1, 3), limiter.AsEarned)
	fmt.Println(bucket.PeekAt(0, 0).Remaining)
	_ = bucket.ReconfigureAt(0, rate, burst, limiter.AsEarned)
	fmt.Println(bucket.PeekAt(0, 0).Remaining, bucket.PeekAt(limiter.Time(100*time.Millisecond), 0).Remaining)
	// Output:
	// 66.666666
	// 66.666666 166.666666
}

func ExampleTokenBucket_Wait() {
	bucket, _ := limiter.NewTokenBucket(limiter.PerSecond(1000), 1*limiter.Token)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range 3 {
		if err := bucket.Wait(ctx, 1); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(bucket.Wait(ctx, 2))
	// Output: limiter: cost can never be granted
}

func ExampleKeyed() {
	perUser, err := limiter.NewKeyed(limiter.PerMinute(60), 2*limiter.Token, 1_000_000)
	if err != nil {
		panic(err)
	}
	for _, user := range []string{"ada", "ada", "ada", "bob"} {
		fmt.Println(user, perUser.Allow(user))
	}
	// Output:
	// ada true
	// ada true
	// ada false
	// bob true
}

// A request must pass the limit of its user and that of all users. If one refuses, the other keeps its token.
func ExampleAll() {
	everyone, _ := limiter.NewTokenBucket(limiter.PerMinute(1), 3*limiter.Token)
	perUser, _ := limiter.NewKeyed(limiter.PerMinute(1), 2*limiter.Token, 1000)
	for _, user := range []string{"ada", "ada", "ada", "bob", "eve"} {
		parts := [...]limiter.Charge{everyone.Charge(1), perUser.Charge(perUser.Hash(user), 1)}
		d := limiter.All(parts[:])
		fmt.Println(user, d.Allowed, d.Remaining.Whole(), d.Limit)
	}
	// Output:
	// ada true 1 2
	// ada true 0 2
	// ada false 0 2
	// bob true 0 3
	// eve false 0 3
}

func ExampleLeakyBucket() {
	queue, _ := limiter.NewLeakyBucketAt(0, limiter.PerSecond(10), 2*limiter.Token)
	for range 3 {
		turn := queue.TakeAt(0, 1)
		fmt.Println(turn.Allowed, turn.Wait, turn.RetryAfter)
	}
	// Output:
	// true 0s 0s
	// true 100ms 0s
	// false 0s 100ms
}

func ExampleMeter() {
	meter, _ := limiter.NewMeterAt(0, limiter.PerSecond(10), 2*limiter.Token, 1*limiter.Token)
	for range 4 {
		fmt.Println(meter.MarkAt(0, 1, limiter.Green))
	}
	// Output:
	// green
	// green
	// yellow
	// red
}

func ExampleSlidingLog() {
	log, _ := limiter.NewSlidingLog(100, time.Minute)
	granted := 0
	for at := limiter.Time(0); at < limiter.Time(time.Minute); at += limiter.Time(100 * time.Millisecond) {
		if log.TakeAt(at, 1).Allowed {
			granted++
		}
	}
	fmt.Println(granted)
	// Output: 100
}

func ExampleConcurrency() {
	inFlight, _ := limiter.NewConcurrency(2)
	fmt.Println(inFlight.Acquire(1).Allowed, inFlight.Acquire(1).Allowed, inFlight.Acquire(1).Allowed)
	inFlight.Release(1)
	fmt.Println(inFlight.Acquire(1).Allowed)
	// Output:
	// true true false
	// true
}
