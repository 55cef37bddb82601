// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// waitLimit is far more than any wait takes on a busy machine with one processor.
const waitLimit = 2 * time.Minute

// waitFor calls check until it returns nil. It gives up when the time is over or
// when alive says that what it waits for cannot come any more.
func waitFor(ctx context.Context, what string, alive func() error, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if dead := alive(); dead != nil {
			return fmt.Errorf("%s: %w", what, dead)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// alwaysAlive is for waits that have no process to watch.
func alwaysAlive() error { return nil }
