// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress tells a person at a terminal what a long command is doing.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress prints lines with the time since the start. Safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

// New begins now.
func New(out io.Writer) *Progress { return &Progress{out: out, begin: time.Now()} }

// Say prints a line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// patience is how long a step may be silent at first, and then between two signs of life.
const (
	patience = 2 * time.Second
	signs    = 10 * time.Second
)

// Step runs fn and says how long it took; one that takes its time says that it is at work.
func (p *Progress) Step(name string, fn func() error) error {
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
				p.Say("%s ... %s", name, time.Since(begin).Round(time.Second))
				timer.Reset(signs)
			}
		}
	})
	err := fn()
	close(done)
	watcher.Wait()
	if err != nil {
		p.Say("%s: failed", name)
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Say("%s (%.1fs)", name, time.Since(begin).Seconds())
	return nil
}
