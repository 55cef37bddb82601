// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints lines with the time since the start.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, begin: time.Now()} }

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// patience is how long a step may be silent at first, and then between two signs of life.
const (
	patience = 2 * time.Second
	signs    = 10 * time.Second
)

// step runs fn and says how long it took; one that takes its time says that it is at work.
func (p *progress) step(name string, fn func() error) error {
	begin, done := time.Now(), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				p.say("%s ... %s", name, time.Since(begin).Round(time.Second))
				timer.Reset(signs)
			}
		}
	})
	err := fn()
	close(done)
	watcher.Wait()
	if err != nil {
		p.say("%s: failed", name)
		return fmt.Errorf("%s: %w", name, err)
	}
	p.say("%s (%.1fs)", name, time.Since(begin).Seconds())
	return nil
}
