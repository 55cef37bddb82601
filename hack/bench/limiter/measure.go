// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// loop makes n decisions. Each contender brings its own loop, so that no call through an interface is measured.
type loop func(n int)

// contender is one implementation in a contest. make returns the loop of one goroutine.
type contender struct {
	name string
	make func(worker int) loop
}

// ours is the name of our contender.
const ours = "headgate"

// contest is one case: what is measured, on how many processors, and what is aimed at.
type contest struct {
	name       string
	unit       string
	procs      int
	goal       float64 // at most; 0 for none
	ratio      float64 // at least so much better than the best peer; 0 for none
	large      bool    // uses more memory than a cache holds, so that it takes longer until that is as warm as it gets
	contenders []contender
}

// figure is what one contender needed.
type figure struct {
	name   string
	value  float64
	allocs float64 // per operation
}

type measurer struct {
	passes int
	rounds int           // in each pass; half as many for large cases
	length time.Duration // of one measurement; five times that for large cases
}

// contests measures all cases in turn, pass by pass. In each, contenders run in turn for a moment, many times over, so
// that what else the machine does hits all of them and leaves some moments to each, and the best of each counts.
func (m measurer) contests(cs []contest) [][]figure {
	best := make([][]figure, len(cs))
	arenas := make([]arena, len(cs))
	for i, c := range cs {
		arenas[i] = m.prepare(c)
		best[i] = make([]figure, len(c.contenders))
	}
	for pass := range m.passes {
		for i, c := range cs {
			fmt.Fprintf(os.Stderr, "pass %d of %d: %s\n", pass+1, m.passes, c.name)
			m.contest(arenas[i], best[i])
		}
	}
	return best
}

// arena is a case made ready: each contender's loops, and how many operations one measurement of it takes.
type arena struct {
	contest
	loops  [][]loop
	counts []int
}

func (m measurer) prepare(c contest) arena {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	a := arena{contest: c}
	for _, who := range c.contenders {
		var loops []loop
		for worker := range c.procs {
			loops = append(loops, who.make(worker))
		}
		a.loops = append(a.loops, loops)
		a.counts = append(a.counts, count(loops, m.lengthOf(c)))
	}
	return a
}

// contest lowers best to what it measures. Caches are warmed before each measurement.
func (m measurer) contest(a arena, best []figure) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(a.procs))
	rounds := m.rounds
	if a.large {
		rounds = (rounds + 1) / 2
	}
	for range rounds {
		for i, who := range a.contenders {
			timed(a.loops[i], a.counts[i]/4)
			f := timed(a.loops[i], a.counts[i])
			f.name = who.name
			if best[i].name == "" || f.value < best[i].value {
				best[i] = f
			}
		}
	}
}

func (m measurer) lengthOf(c contest) time.Duration {
	if c.large {
		return 5 * m.length
	}
	return m.length
}

// count finds how many operations in each loop take about the wanted length.
func count(loops []loop, length time.Duration) int {
	for n := 1000; ; n *= 4 {
		if f := timed(loops, n); f.value*float64(n)*float64(len(loops)) >= float64(length)/4 {
			return max(int(float64(length)/f.value/float64(len(loops))), 1)
		}
	}
}

// timed runs n operations in each loop at once and returns the wall time for each operation.
func timed(loops []loop, n int) figure {
	var before, after runtime.MemStats
	var done sync.WaitGroup
	start := make(chan struct{})
	for _, l := range loops {
		done.Go(func() {
			<-start
			l(n)
		})
	}
	runtime.ReadMemStats(&before)
	begin := time.Now()
	close(start)
	done.Wait()
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	all := float64(n * len(loops))
	return figure{value: float64(took.Nanoseconds()) / all, allocs: float64(after.Mallocs-before.Mallocs) / all}
}
