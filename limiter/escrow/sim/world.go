// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

const millisecond = int64(1_000_000)

// World is one limit with its accounts, its pods and its leaders.
type World struct {
	// Net may be changed while the world runs.
	Net Network
	// Step is how often pods and leaders look at their clocks, in nanoseconds.
	Step int64
	// Hold is how long a request may be held, in nanoseconds.
	Hold int64
	// Lease is how long leadership lasts after a renewal, in nanoseconds.
	Lease int64
	// Peer decides in place of holders, where it is set.
	Peer Peer
	// Hasty leaders sometimes stop before their last word is written.
	Hasty bool
	// Forgetful makes pods and leaders forget the account whenever they may, and begin it anew.
	Forgetful bool
	// Oracles have seen every admission, each those of one account.
	Oracles []*Oracle
	// What has happened so far: messages sent, and costs.
	Messages, Offered, Admitted, Denied int64
	// Worked is what the leaders' decisions took, in real time, where it is Metered. Nothing depends on it.
	Worked  time.Duration
	Metered bool

	rand    *rand.Rand
	now     int64
	future  queue
	limit   escrow.Limit
	ceiling escrow.Limit // the largest numbers that may still be in use
	edited  bool
	sleep   int64 // D
	pods    []*Pod
	leaders []*Leader
	leader  *Leader // that the API server names
	epoch   uint64
	left    *remainder
	drift   int64
}

// New returns a world of one account without pods or a leader. sleep is D; drift is at most how many millionths a clock is off.
func New(seed uint64, l escrow.Limit, sleep, drift int64) *World {
	return &World{
		Step: millisecond, Hold: 9 * millisecond, Lease: 1000 * millisecond, Oracles: []*Oracle{NewOracle(l)},
		rand: rand.New(rand.NewPCG(seed, 1)), limit: l, ceiling: l, sleep: sleep, drift: drift,
	}
}

// Keys gives the world n accounts. Call it before anything else.
func (w *World) Keys(n int) {
	for len(w.Oracles) < n {
		w.Oracles = append(w.Oracles, NewOracle(w.limit))
	}
}

// Broken describes the first interval of each account in which the law was broken, or is empty.
func (w *World) Broken() (broken string) {
	for _, o := range w.Oracles {
		broken += o.Broken()
	}
	return broken
}

// Tightest is the largest part of the burst that was in use of any account at any time.
func (w *World) Tightest() (part float64) {
	for _, o := range w.Oracles {
		part = max(part, o.Tightest())
	}
	return part
}

// Now is the time of the world.
func (w *World) Now() int64 { return w.now }

// Pods lists the pods, dead ones included.
func (w *World) Pods() []*Pod { return w.pods }

// Live lists the pods that run and are not shutting down.
func (w *World) Live() []*Pod {
	var live []*Pod
	for _, p := range w.pods {
		if p.alive && !p.draining {
			live = append(live, p)
		}
	}
	return live
}

// Edit declares other numbers, which hold beside the old ones until the leader says that those are out of use.
func (w *World) Edit(l escrow.Limit) {
	w.limit = l
	w.ceiling.Burst = max(w.ceiling.Burst, l.Burst)
	w.ceiling.MaxCost = max(w.ceiling.MaxCost, l.MaxCost)
	w.edited = true
	for _, o := range w.Oracles {
		o.Edited(l, w.now)
	}
	if d := w.leader; d != nil {
		d.do(func() { d.fleet.Edit(w.limit, d.time()) })
	}
}

func (w *World) clock() Clock {
	c := Clock{offset: w.rand.Int64N(1 << 40)}
	if w.drift > 0 {
		c.ppm = []int64{-w.drift, 0, w.drift}[w.rand.IntN(3)]
	}
	return c
}
