// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader decides which replica leads, until when it may be sure of it, and under which epoch: the Lease is the only
// thing that replicas share.
package leader

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The times of the election. A leader renews each second and stops being sure of its lease after RenewDeadline; another
// replica may take over after LeaseDuration without a renewal. It looks each RetryPeriod, and up to 1.2 times that later, since
// limits are used badly for as long as nobody leads: a lease that is given back should not wait to be found.
const (
	LeaseDuration = 6 * time.Second
	RenewDeadline = 4 * time.Second
	RetryPeriod   = 250 * time.Millisecond

	renewEvery = time.Second
)

// Lock is a Lease lock that remembers when this replica last renewed.
type Lock struct {
	resourcelock.Interface
	now     func() int64
	renewed atomic.Int64
}

// NewLock returns the lock of the Lease name in namespace, held as identity. now is a monotonic clock in nanoseconds that
// does not stop while the machine sleeps.
func NewLock(cfg *rest.Config, namespace, name, identity string, now func() int64) (*Lock, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = RenewDeadline / 2 // one slow call must not cost the lease
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for the lease: %w", err)
	}
	inner, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, set.CoreV1(), set.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("lock of the lease: %w", err)
	}
	return &Lock{Interface: inner, now: now}, nil
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update implements resourcelock.Interface. The elector asks a leader to renew as often as it lets others look; what is renewed
// already is not written again.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if at := l.renewed.Load(); at != 0 && r.HolderIdentity == l.Identity() && l.now()-at < int64(renewEvery) {
		return nil
	}
	return l.note(r, func() error { return l.Interface.Update(ctx, r) })
}

// note remembers the time before a successful write: the lease runs from then at the earliest.
func (l *Lock) note(r resourcelock.LeaderElectionRecord, write func() error) error {
	start := l.now()
	if err := write(); err != nil {
		return err
	}
	if r.HolderIdentity == l.Identity() {
		l.renewed.Store(start)
	} else {
		l.renewed.Store(0) // released
	}
	return nil
}

// Until is until when this replica is certain to lead, by its own clock; 0 when it does not.
func (l *Lock) Until() int64 {
	if at := l.renewed.Load(); at != 0 {
		return at + int64(RenewDeadline)
	}
	return 0
}

// Valid reports whether this replica is certain to lead now.
func (l *Lock) Valid() bool { return l.now() < l.Until() }
