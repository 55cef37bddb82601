// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import "math"

// poisson draws how many arrive where mean are expected.
func (w *World) poisson(mean float64) int {
	if mean <= 0 {
		return 0
	}
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*w.rand.NormFloat64())))
	}
	limit, n, p := math.Exp(-mean), 0, 1.0
	for {
		p *= w.rand.Float64()
		if p <= limit {
			return n
		}
		n++
	}
}

// Zipf spreads a rate over the live pods by Zipf's law of exponent 1, in a random order.
func (w *World) Zipf(total float64) {
	live := w.Live()
	sum := 0.0
	for i := range live {
		sum += 1 / float64(i+1)
	}
	for i, j := range w.rand.Perm(len(live)) {
		live[j].Rate = total / sum / float64(i+1)
	}
}

// Even spreads a rate evenly over the live pods.
func (w *World) Even(total float64) {
	live := w.Live()
	for _, p := range live {
		p.Rate = total / float64(len(live))
	}
}
