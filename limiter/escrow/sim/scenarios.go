// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

const second = int64(time.Second)

// PerSecond is a limit of so many requests per second with a burst of a tenth of a second.
func PerSecond(rate uint64) escrow.Limit {
	return escrow.Limit{Requests: rate, Period: uint64(time.Second), Burst: int64(rate / 10)}
}

// Scenarios are the courses of events in which the promise is measured, at one rate per second.
func Scenarios(rate uint64) []Scenario {
	l := PerSecond(rate)
	twice := 2 * float64(rate)
	return []Scenario{
		{
			Name: "balanced, 50 pods", Limit: l, Warm: 2 * second, Lasts: 10 * second, Mean: 0.99, Worst: 0.97,
			Play: func(w *World) {
				w.begin(50)
				w.Even(twice)
			},
		},
		{
			Name: "Zipf, 50 pods, reshuffled each 5 s", Limit: l, Warm: 2 * second, Lasts: 18 * second, Mean: 0.99, Worst: 0.97,
			Play: func(w *World) {
				w.begin(50)
				w.Zipf(twice)
				w.Every(5*second, func() bool { w.Zipf(twice); return true })
			},
		},
		{
			Name: "all on 1 pod of 10, jumping each 2 s", Limit: l, Warm: 2 * second, Lasts: 18 * second, Mean: 0.99, Worst: 0.97,
			Play: func(w *World) {
				w.begin(10)
				w.jump(twice, 0)
			},
		},
		{
			Name: "scale 10 -> 50 -> 10", Limit: l, Warm: 2 * second, Lasts: 18 * second, Mean: 0.99, Worst: 0.97,
			Play: func(w *World) {
				w.begin(10)
				w.Even(twice)
				w.At(6*second, func() { w.begin(40); w.Even(twice) })
				w.At(12*second, func() {
					for _, p := range w.Live()[10:] {
						p.Shutdown(500*millisecond, second)
					}
					w.Even(twice)
				})
			},
		},
		{
			Name: "mint away 5 s, 10 -> 20 pods meanwhile", Limit: l, Warm: 2 * second, Lasts: 14 * second, Mean: 0.90, Short: 2, Gone: 5 * second, Back: 10 * second, Leader: true,
			Play: func(w *World) {
				w.begin(10)
				w.Even(twice)
				w.At(5*second, func() {
					w.leader.alive = false
					w.leader = nil
				})
				w.At(7*second, func() {
					for range 10 {
						w.Start(twice / 20) // beside the demand on those that have a share
					}
				})
				w.At(10*second, func() { w.Lead() })
			},
		},
		{
			Name: "planned restart of the operator", Limit: l, Warm: 2 * second, Lasts: 10 * second, Mean: 0.95, Short: 1, Leader: true,
			Play: func(w *World) {
				w.begin(10)
				w.Even(twice)
				w.At(6*second, func() { w.Restart(200 * millisecond) })
			},
		},
		{
			Name: "offered 0.8 of the limit, Zipf, 50 pods", Limit: l, Warm: 2 * second, Lasts: 10 * second, Mean: 0.995, Served: true,
			Play: func(w *World) {
				w.begin(50)
				w.Zipf(0.8 * float64(rate))
			},
		},
		{
			Name: "rolling restart of 20 pods", Limit: l, Warm: 2 * second, Lasts: 22 * second, Mean: 0.97, Worst: 0.90,
			Play: func(w *World) {
				w.begin(20)
				w.Even(twice)
				for i := range int64(20) {
					w.At((3+i)*second, func() {
						w.Start(0)
						w.Live()[0].Shutdown(500*millisecond, second)
						w.Even(twice)
					})
				}
			},
		},
	}
}

// Pinned is one key of a keyed limit, pinned to one pod of ten by a connection that is kept alive.
func Pinned() Scenario {
	l := escrow.Limit{Requests: 100, Period: uint64(time.Second), Burst: 200, Keyed: true}
	return Scenario{
		Name: "one key (100/s, burst 200) pinned to 1 pod of 10", Limit: l, Warm: 6 * second, Lasts: 10 * second, Mean: 0.90, Short: 10,
		Play: func(w *World) {
			w.begin(10)
			w.pods[3].Rate = 200
		},
	}
}

// begin starts pods.
func (w *World) begin(n int) {
	for range n {
		w.Start(0)
	}
}

// jump puts all demand on one pod, and on the next each 2 s.
func (w *World) jump(total float64, on int) {
	live := w.Live()
	for i, p := range live {
		p.Rate = 0
		if i == on%len(live) {
			p.Rate = total
		}
	}
	w.After(2*second, func() { w.jump(total, on+1) })
}

// Hourly is 5 per hour with a burst of 5 over 50 pods that always have demand, where the operator is restarted each hour. It
// returns what was admitted up to a minute after each of ten hours, and what was broken.
func Hourly(seed uint64) (admitted []int64, broken string) {
	const hour, minute = int64(time.Hour), int64(time.Minute)
	w := New(seed, escrow.Limit{Requests: 5, Period: uint64(hour), Burst: 5}, minute, 0)
	w.Net = Network{Delay: 2 * millisecond}
	w.Step = second
	w.Lead()
	for range 50 {
		w.Start(0.02)
	}
	for h := range int64(10) {
		w.At(h*hour+hour/2, func() { w.Restart(second) })
		w.Run((h+1)*hour + minute)
		admitted = append(admitted, w.Admitted)
	}
	return admitted, w.Broken()
}
