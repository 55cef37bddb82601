// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// table prints one line a second while the scene plays.
type table struct {
	stage *stage
	run   *load.Run
	doing atomic.Pointer[string]
}

func (t *table) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.doing.Store(&text)
}

const row = "%6s  %5s  %2s  %9s  %7v  %8v  %6v  %6v  %s\n"

// show prints until ctx is done.
func (t *table) show(ctx context.Context) {
	fmt.Printf("\n"+row, "time", "pods", "N", "share", "offered", "admitted", "denied", "errors", "")
	begin := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var last load.Count
	for line := 1; ; line++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := t.run.Count()
		pods, n, share := t.look(ctx)
		if ctx.Err() != nil {
			return
		}
		fmt.Printf(row, fmt.Sprintf("%.0fs", time.Since(begin).Seconds()), pods, n, share,
			now.Offered-last.Offered, now.Admitted-last.Admitted, now.Denied-last.Denied, now.Failed-last.Failed, *t.doing.Load())
		last = now
	}
}

// look reads the ready and all pods, and what the policy's status says of its first limit.
func (t *table) look(ctx context.Context) (pods, n, share string) {
	pods, n, share = "?", "?", "?"
	ctx, cancel := context.WithTimeout(ctx, 900*time.Millisecond)
	defer cancel()
	if list, err := t.stage.cluster.Pods(ctx, t.stage.app); err == nil {
		ready := 0
		for i := range list {
			if testbed.Ready(&list[i]) {
				ready++
			}
		}
		pods = fmt.Sprintf("%d/%d", ready, len(list))
	}
	var p v1alpha1.RateLimitPolicy
	if err := t.stage.cluster.Get(ctx, client.ObjectKeyFromObject(t.stage.policy), &p); err == nil {
		share = p.Status.Summary.Share
		if len(p.Status.Limits) > 0 && p.Status.Limits[0].Pods != nil {
			n = fmt.Sprint(*p.Status.Limits[0].Pods)
		}
	}
	return pods, n, share
}
