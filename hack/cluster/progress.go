// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress prints one line a step, with the time since the start. It writes to
// stderr, so that stdout has only what a caller may want to capture.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

// patience is how long a step may be silent.
const patience = 15 * time.Second

func newProgress() *progress { return &progress{out: os.Stderr, begin: time.Now()} }

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// step runs fn and says how long it took; a long one reports that it goes on.
func (p *progress) step(name string, fn func() error) error {
	begin, done := time.Now(), make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		ticker := time.NewTicker(patience)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.say("%s: still at it after %s", name, time.Since(begin).Round(time.Second))
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
