// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"time"
)

// leastFeed bounds how often what is scarce is lent.
const leastFeed = time.Millisecond

// feedAll lends what is scarce as it is earned, until the context ends.
func (h *Home) feedAll(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if d, ok := h.feedHungry(); ok {
			timer.Reset(max(d, leastFeed))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.feed:
		}
	}
}

// feedHungry lends where it is due and returns how long until it is due again.
func (h *Home) feedHungry() (next time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	best := int64(0)
	for m, who := range h.hungry {
		at, hungry := m.Next()
		if hungry && at <= now {
			h.lease(who.account.lending, now)
			h.lend(who.account, who.key, m, now)
			at, hungry = m.Next()
		}
		switch {
		case !hungry || !who.account.lending.fleet.Leading(now):
			delete(h.hungry, m)
		case best == 0 || at < best:
			best = at
		}
	}
	return time.Duration(best - now), best != 0
}
