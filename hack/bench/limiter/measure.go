// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	contenders []contender
}

// figure is what one contender needed.
type figure struct {
	name   string
	value  float64
	allocs float64 // per operation
}

type measurer struct {
	rounds int
	length time.Duration
}

// contest measures all contenders in turn, several times over, so that a noisy moment hits all of them, and keeps the
// best of each.
func (m measurer) contest(c contest) []figure {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	best := make([]figure, len(c.contenders))
	loops := make([][]loop, len(c.contenders))
	for i, who := range c.contenders {
		for worker := range c.procs {
			loops[i] = append(loops[i], who.make(worker))
		}
	}
	counts := make([]int, len(c.contenders))
	for i := range c.contenders {
		counts[i] = m.count(loops[i])
	}
	for round := range m.rounds {
		for i, who := range c.contenders {
			f := timed(loops[i], counts[i])
			f.name = who.name
			if round == 0 || f.value < best[i].value {
				best[i] = f
			}
		}
	}
	return best
}

// count finds how many operations take about the wanted length.
func (m measurer) count(loops []loop) int {
	for n := 1000; ; n *= 4 {
		if f := timed(loops, n); f.value*float64(n)*float64(len(loops)) >= float64(m.length)/4 {
			return max(int(float64(m.length)/f.value/float64(len(loops))), 1)
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
