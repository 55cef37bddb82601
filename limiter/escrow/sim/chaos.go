// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

// Chaos runs a world in which everything goes wrong that the law allows for, decided by the seed alone, and returns it.
func Chaos(seed uint64) *World {
	r := rand.New(rand.NewPCG(seed, 2))
	pick := func(of ...int64) int64 { return of[r.IntN(len(of))] }

	l := escrow.Limit{
		Requests: uint64(pick(1, 20, 100, 1000)), Period: uint64(time.Second), Burst: pick(1, 3, 5, 20, 100, 400),
		Keyed: r.IntN(2) == 0,
	}
	l.MaxCost = min(l.Burst, pick(1, 1, 2, 5))
	drift := int64(1000)
	w := New(seed, l, pick(200, 500, 1000)*millisecond, drift)
	if l.Keyed {
		w.Keys(int(pick(1, 1, 3)))
	}
	w.Hasty = true
	w.Forgetful = r.IntN(3) == 0
	w.Step = pick(5, 10, 20) * millisecond
	w.Net = Network{
		Delay: pick(100_000, millisecond, 5*millisecond, 20*millisecond), Jitter: pick(0, millisecond, 20*millisecond),
		Loss: int(pick(0, 10, 100)), Twice: int(pick(0, 10, 100)), Late: pick(millisecond, 50*millisecond, 2000*millisecond),
	}
	start := func() {
		p := w.Start(0)
		p.patient = r.IntN(4) == 0
		p.pursed = r.IntN(2) == 0
		p.Cost = 1 + r.Int64N(max(1, w.limit.MaxCost))
		if r.IntN(4) > 0 {
			p.Rate = float64(l.Requests) * 4 * r.Float64()
		}
	}
	for range 1 + r.IntN(8) {
		start()
	}
	w.Lead()

	some := func() *Pod {
		live := w.Live()
		if len(live) == 0 {
			start()
			live = w.Live()
		}
		return live[r.IntN(len(live))]
	}
	soon := func(most int64) int64 { return r.Int64N(most*millisecond) + 1 }
	deeds := []func(){
		start,
		start,
		func() { some().Kill(soon(3000)) },
		func() { some().Shutdown(soon(500), soon(3000)) },
		func() {
			p := some()
			p.Cut(r.IntN(3) > 0, r.IntN(3) > 0)
			w.After(soon(3000), func() { p.Cut(false, false) })
		},
		func() { some().Freeze(soon(1500)) },
		func() {
			if d := w.leader; d != nil {
				d.Freeze(soon(2500))
			}
		},
		w.Crash,
		w.Isolate,
		func() { w.Restart(soon(500)) },
		func() { some().Rate = float64(l.Requests) * 6 * r.Float64() },
		func() {
			for _, p := range w.Live() {
				p.Rate = 0
			}
			some().Rate = float64(l.Requests) * 3
		},
		func() {
			n := w.limit
			n.Requests = uint64(pick(1, 20, 100, 1000))
			n.Burst = pick(1, 3, 5, 20, 100, 400)
			n.MaxCost = min(n.Burst, n.MaxCost)
			w.Edit(n)
		},
		func() { // a rollout
			for _, p := range w.Live() {
				start()
				p.Shutdown(soon(500), soon(3000))
			}
		},
	}
	at := int64(0)
	for range 12 {
		at += soon(1200)
		w.At(at, deeds[r.IntN(len(deeds))])
	}
	w.Run(at + 1000*millisecond)
	return w
}
