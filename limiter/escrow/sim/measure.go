// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/headgate/headgate/limiter/escrow"
)

// Scenario is a course of events under which the use of a limit is measured.
type Scenario struct {
	Name  string
	Limit escrow.Limit
	// Lasts is how long it is measured for, after Warm, in nanoseconds.
	Warm, Lasts int64
	// Play sets the world up: pods, demand and what happens to them.
	Play func(w *World)
	// Mean and Worst are the goals: the least use of the limit over all, and in the worst second in a hundred.
	Mean, Worst float64
	// Short is how many whole seconds may be below 95 %.
	Short int
	// Leader says that it is the leader that something happens to; peers have none.
	Leader bool
	// Gone and Back are when the leader goes and another comes, where it is away for longer.
	Gone, Back int64
	// Served says that use is measured against what was offered, and not against the limit.
	Served bool
}

// Result is what came of a scenario.
type Result struct {
	// Mean and Worst are the use of the limit over all, and in the worst second in a hundred (seconds that begin each 10 ms).
	Mean, Worst float64
	// Short counts the whole seconds below 95 %, and Dark is how long less than 80 % was admitted, in steps of 100 ms.
	Short int
	Dark  int64
	// Messages per second and pod, both ways together.
	Messages float64
	// Away is the use of the limit while the leader was away, from 2 D after it went.
	Away float64
	// Leader is how much of a processor the leader's decisions took, per 1000 pods, without what the streams cost.
	Leader float64
	// Broken is empty while the law holds. Most is the largest part of the burst that was in use at any time.
	Broken string
	Most   float64
	// PerTen has what was admitted in each 10 ms.
	PerTen []int64
}

const ten = 10 * millisecond

// Measure runs a scenario: one-way 2 ms, holding up to 9 ms, D = 1 s.
func Measure(s Scenario, seed uint64) Result { return MeasurePeer(s, nil, seed) }

// MeasurePeer runs a scenario with another way to share the limit.
func MeasurePeer(s Scenario, peer Peer, seed uint64) Result {
	w := New(seed, s.Limit, escrow.Sleep, 1000)
	w.Net, w.Peer, w.Metered = Network{Delay: 2 * millisecond}, peer, true
	if peer == nil {
		w.Lead()
	}
	s.Play(w)
	w.Run(s.Warm)
	admitted, offered, messages, worked := w.Admitted, w.Offered, w.Messages, w.Worked
	var r Result
	var asked []int64
	lived := 0.0
	for w.now < s.Warm+s.Lasts {
		a, o := w.Admitted, w.Offered
		w.Run(w.now + ten)
		r.PerTen = append(r.PerTen, w.Admitted-a)
		asked = append(asked, w.Offered-o)
		lived += float64(len(w.Live())) * float64(ten) / 1e9
	}
	full := float64(s.Limit.Requests) * float64(s.Lasts) / float64(s.Limit.Period)
	if s.Served {
		full = float64(w.Offered - offered)
	}
	r.Mean = float64(w.Admitted-admitted) / full
	r.Messages = float64(w.Messages-messages) / lived
	r.Broken, r.Most = w.Broken(), w.Tightest()
	r.Leader = (w.Worked - worked).Seconds() / lived * 1000
	if s.Back > s.Gone {
		from, until := (s.Gone+2*escrow.Sleep-s.Warm)/ten, (s.Back-s.Warm)/ten
		r.Away = float64(sum(r.PerTen[from:until])) / (float64(s.Limit.Requests) * float64(until-from) * float64(ten) / float64(s.Limit.Period))
	}

	var seconds []float64
	const n = 100
	for i := 0; i+n <= len(r.PerTen); i++ {
		full := float64(s.Limit.Requests) * 1e9 / float64(s.Limit.Period)
		if s.Served {
			full = float64(sum(asked[i : i+n]))
		}
		seconds = append(seconds, float64(sum(r.PerTen[i:i+n]))/full)
	}
	for i := 0; i < len(seconds); i += n {
		if seconds[i] < 0.95 {
			r.Short++
		}
	}
	for i := 0; i+10 <= len(r.PerTen); i += 10 {
		full := float64(s.Limit.Requests) * 1e8 / float64(s.Limit.Period)
		if !s.Served && float64(sum(r.PerTen[i:i+10])) < 0.8*full {
			r.Dark += 10 * ten
		}
	}
	slices.Sort(seconds)
	if len(seconds) > 0 {
		r.Worst = seconds[len(seconds)/100]
	}
	return r
}

func sum(of []int64) int64 {
	var t int64
	for _, x := range of {
		t += x
	}
	return t
}

// BackAt returns how long after a time of the measured span 95 % of the limit was admitted again, over 20 ms, in
// nanoseconds; the resolution is 10 ms.
func (r Result) BackAt(l escrow.Limit, at int64) int64 {
	need := 0.95 * float64(l.Requests) * float64(2*ten) / float64(l.Period)
	first := int(at / ten)
	for i := first; i+2 <= len(r.PerTen); i++ {
		if float64(sum(r.PerTen[i:i+2])) >= need {
			return int64(i-first) * ten
		}
	}
	return -1
}
