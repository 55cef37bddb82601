// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

// Clock is the monotonic clock of one node: it runs ppm millionths fast and does not start at 0.
type Clock struct {
	offset int64
	ppm    int64
}

func (c Clock) at(now int64) int64 {
	return c.offset + now + now/1_000_000*c.ppm + now%1_000_000*c.ppm/1_000_000
}

// Network is what happens to messages on their way.
type Network struct {
	// Delay of every message, and Jitter at most on top of it, in nanoseconds; messages overtake one another.
	Delay, Jitter int64
	// Loss and Twice are how many messages in a thousand are lost, and are delivered twice.
	Loss, Twice int
	// Late is at most how much later the second copy comes, in nanoseconds.
	Late int64
}

// wire is one direction between a pod and a leader. What is sent at one time goes in one message.
type wire struct{ last int64 }

func (w *World) count(on *wire) {
	if on.last != w.now+1 {
		on.last = w.now + 1
		w.Messages++
	}
}

// carry delivers a message, or not.
func (w *World) carry(on *wire, cut bool, deliver func()) {
	w.count(on)
	if cut || w.rand.IntN(1000) < w.Net.Loss {
		return
	}
	w.After(w.delay(), deliver)
	if w.rand.IntN(1000) < w.Net.Twice {
		w.After(w.delay()+w.rand.Int64N(w.Net.Late+1), deliver)
	}
}

func (w *World) delay() int64 { return w.Net.Delay + w.rand.Int64N(w.Net.Jitter+1) }
