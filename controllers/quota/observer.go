// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/controllers/target"
)

// Observer tells a Home of every pod and node. It runs in every replica, so that a new leader knows them at once.
type Observer struct {
	Cache cache.Cache
	// Live is asked when the cache does not know a pod's owner yet.
	Live client.Reader
	Home *Home

	mu     sync.Mutex
	owners map[types.UID][]target.Workload
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	synced []toolscache.InformerSynced
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o *Observer) NeedLeaderElection() bool { return false }

// Start observes until the context ends.
func (o *Observer) Start(ctx context.Context) error {
	o.owners = map[types.UID][]target.Workload{}
	o.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](100*time.Millisecond, 10*time.Second))
	defer o.queue.ShutDown()
	if err := o.watch(ctx, &corev1.Node{}, o.nodeHandler()); err != nil {
		return err
	}
	if err := o.watch(ctx, &corev1.Pod{}, o.podHandler(ctx)); err != nil {
		return err
	}
	go o.retry(ctx)
	<-ctx.Done()
	return nil
}

func (o *Observer) watch(ctx context.Context, obj client.Object, h toolscache.ResourceEventHandler) error {
	inf, err := o.Cache.GetInformer(ctx, obj)
	if err != nil {
		return fmt.Errorf("informer of %T: %w", obj, err)
	}
	reg, err := inf.AddEventHandler(h)
	if err != nil {
		return fmt.Errorf("handler of %T: %w", obj, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = append(o.synced, reg.HasSynced)
	return nil
}

// WaitForSync blocks until everything that existed has been observed.
func (o *Observer) WaitForSync(ctx context.Context) error {
	for {
		o.mu.Lock()
		started, synced := len(o.synced) == 2, o.synced
		o.mu.Unlock()
		if started {
			if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
				return ctx.Err()
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (o *Observer) nodeHandler() toolscache.ResourceEventHandler {
	see := func(obj any) {
		if n, ok := obj.(*corev1.Node); ok {
			o.Home.ObserveNode(NewNodeState(n))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if n, ok := last[*corev1.Node](obj); ok {
				s := NewNodeState(n)
				s.Deleted = true
				o.Home.ObserveNode(s)
			}
		},
	}
}

func (o *Observer) podHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.pod(ctx, obj) },
		UpdateFunc: func(_, obj any) { o.pod(ctx, obj) },
		DeleteFunc: func(obj any) {
			p, ok := last[*corev1.Pod](obj)
			if !ok {
				return
			}
			o.mu.Lock()
			owners := o.owners[p.UID]
			delete(o.owners, p.UID)
			o.mu.Unlock()
			o.Home.ForgetPod(NewPodState(p, owners))
		},
	}
}

// pod observes one pod. Every event is taken in order, and none is merged with a later one: the last state of a deleted pod
// may be the only proof that its sidecar has ended.
func (o *Observer) pod(ctx context.Context, obj any) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	owners, known := o.owners[p.UID]
	o.mu.Unlock()
	if !known {
		var err error
		if owners, err = target.Owners(ctx, p, o.Cache, o.Live); err != nil {
			ctrl.Log.WithName("observer").Error(err, "Finding the owner of a pod; trying again")
			o.queue.AddRateLimited(client.ObjectKeyFromObject(p))
			return
		}
		o.mu.Lock()
		o.owners[p.UID] = owners
		o.mu.Unlock()
	}
	o.Home.ObservePod(NewPodState(p, owners))
}

// retry observes again the pods whose owner could not be found.
func (o *Observer) retry(ctx context.Context) {
	for {
		key, stop := o.queue.Get()
		if stop {
			return
		}
		var p corev1.Pod
		if err := o.Cache.Get(ctx, key, &p); err == nil {
			o.pod(ctx, &p)
		}
		o.queue.Done(key)
	}
}

// last returns the last known state of a deleted object.
func last[T any](obj any) (T, bool) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	t, ok := obj.(T)
	return t, ok
}
