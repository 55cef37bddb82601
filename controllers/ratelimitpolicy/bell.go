// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Bell asks for the reconciliation of policies whose pods have changed what they enforce. Ringing never blocks and loses
// nothing: a policy that waits already is not asked for twice. The zero value is ready. Safe for concurrent use.
type Bell struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the controller starts
	early map[reconcile.Request]struct{}
}

// Ring asks for a policy.
func (b *Bell) Ring(policy types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	req := reconcile.Request{NamespacedName: policy}
	if b.queue != nil {
		b.queue.Add(req)
		return
	}
	if b.early == nil {
		b.early = map[reconcile.Request]struct{}{}
	}
	b.early[req] = struct{}{}
}

// source is what the controller watches.
func (b *Bell) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queue = queue
		for req := range b.early {
			queue.Add(req)
		}
		b.early = nil
		return nil
	})
}
