// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import "container/heap"

// queue is the future: events in the order of their times, and of their making where times are equal.
type queue struct {
	events []event
	made   uint64
}

type event struct {
	at   int64
	made uint64
	do   func()
}

func (q *queue) Len() int { return len(q.events) }
func (q *queue) Less(i, j int) bool {
	a, b := &q.events[i], &q.events[j]
	return a.at < b.at || a.at == b.at && a.made < b.made
}
func (q *queue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }
func (q *queue) Push(x any)    { q.events = append(q.events, x.(event)) }
func (q *queue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.events = q.events[:last]
	return e
}

// At makes an event of the world.
func (w *World) At(at int64, do func()) {
	w.future.made++
	heap.Push(&w.future, event{at: max(at, w.now), made: w.future.made, do: do})
}

// After makes an event some time from now.
func (w *World) After(dt int64, do func()) { w.At(w.now+dt, do) }

// Every repeats until do returns false.
func (w *World) Every(dt int64, do func() bool) {
	w.After(dt, func() {
		if do() {
			w.Every(dt, do)
		}
	})
}

// Run lets the world go on until a time.
func (w *World) Run(until int64) {
	for w.future.Len() > 0 && w.future.events[0].at <= until {
		e := heap.Pop(&w.future).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}
