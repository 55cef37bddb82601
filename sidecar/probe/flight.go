// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync"
	"time"
)

// flight runs one probe at most once at a time, and shares what the app said among all who ask.
type flight struct {
	run      runner
	patience time.Duration

	mu      sync.Mutex
	landing chan struct{} // closed when the run in progress is over; nil while there is none
	status  int           // of the last run
	at      time.Time     // when it was over
}

// do returns what the app says; false when the caller has gone before it did.
func (f *flight) do(ctx context.Context, from caller) (int, bool) {
	f.mu.Lock()
	if f.landing == nil && !f.at.IsZero() && time.Since(f.at) < fresh {
		defer f.mu.Unlock()
		return f.status, true
	}
	if f.landing == nil {
		f.landing = make(chan struct{})
		go f.fly(context.WithoutCancel(ctx), from, f.landing)
	}
	landing := f.landing
	f.mu.Unlock()
	select {
	case <-landing:
	case <-ctx.Done():
		return 0, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status, true
}

// fly is not cut short by the caller who began it: others may wait for it.
func (f *flight) fly(ctx context.Context, from caller, landing chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	status := f.run(ctx, from)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.at, f.landing = status, time.Now(), nil
	close(landing)
}
