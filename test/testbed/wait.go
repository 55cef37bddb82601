// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// pollEvery is how often a condition is looked at.
const pollEvery = 100 * time.Millisecond

// ErrStop ends the wait at once when a check wraps it.
var ErrStop = errors.New("no use to wait")

// Wait asks until check returns nil. Its last error says what was still missing when the time was over.
func Wait(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	last := errors.New("never looked")
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && !strings.Contains(err.Error(), "context deadline") {
			last = err // an attempt that the deadline has cut short says nothing
		}
		if errors.Is(err, ErrStop) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not after %s: %w", what, time.Since(begin).Round(100*time.Millisecond), last)
		case <-ticker.C:
		}
	}
}
