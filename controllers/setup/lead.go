// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/leader"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/target"
)

// lead is what a replica does from the moment it is elected: it raises the epoch, learns every policy that pods may be
// enforcing, and only then answers streams as the leader. A pod must never be told that a policy is gone because the new
// leader has not read it yet.
type lead struct {
	home     *quota.Home
	observer *quota.Observer
	epochs   *leader.Epochs
	live     client.Reader
	log      logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *lead) NeedLeaderElection() bool { return true }

// Start leads until the context ends.
func (l *lead) Start(ctx context.Context) error {
	if err := l.observer.WaitForSync(ctx); err != nil {
		return fmt.Errorf("observe pods: %w", err)
	}
	epoch, word, err := l.epochs.Begin(ctx, 0)
	if err != nil {
		return err
	}
	left, err := quota.ParseHandover(word)
	if err != nil {
		l.log.Error(err, "The last leader's word cannot be read; pools start empty")
	}
	var policies v1alpha1.RateLimitPolicyList
	if err := l.live.List(ctx, &policies); err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		if !marked(p) {
			continue // no pod can be enforcing it; its reconciliation publishes it with its first fill
		}
		for _, r := range p.Status.Reserved {
			l.home.Suspect(quota.PodState{
				UID: types.UID(r.UID), Namespace: p.Namespace, Name: r.Name, Node: r.Node, BootID: r.BootID, Owners: target.Of(p),
			})
		}
		namespace := &corev1.Namespace{}
		if err := l.live.Get(ctx, client.ObjectKey{Name: p.Namespace}, namespace); err != nil {
			return fmt.Errorf("namespace %s: %w", p.Namespace, err)
		}
		compiled, err := compile.Policy(p, compile.NamespaceMode(namespace.Labels))
		if err != nil {
			l.log.Info("Policy is invalid", "policy", client.ObjectKeyFromObject(p), "reason", err.Error())
			continue
		}
		l.home.Publish(compiled, target.Of(p), false)
	}
	l.home.Lead(epoch, left)
	l.log.Info("Leading", "epoch", epoch, "policies", len(policies.Items), "handedOver", len(left.Limits))
	if err := l.home.Run(ctx); err != nil {
		return err
	}
	return l.leave()
}

// leave hands over to the next leader, while the lease is still this replica's.
func (l *lead) leave() error {
	epoch, _ := l.home.Leading()
	word, err := l.home.Stop().Marshal()
	if err != nil {
		l.log.Error(err, "Nothing is handed over; the next leader's pools start empty")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := l.epochs.Leave(ctx, epoch, word); err != nil {
		l.log.Error(err, "Nothing is handed over; the next leader's pools start empty")
	}
	return nil
}

// farewell bounds how long handing over may take: the lease lasts no longer.
const farewell = 3 * time.Second

func marked(p *v1alpha1.RateLimitPolicy) bool {
	for _, s := range p.Status.Limits {
		if !s.FirstFill.IsZero() {
			return true
		}
	}
	return false
}

// elector tells the quota server who leads.
type elector struct {
	epochs *leader.Epochs
	home   *quota.Home
}

// Leader implements quota.Elector.
func (e *elector) Leader(ctx context.Context) (string, uint64, error) {
	l, err := e.epochs.Current(ctx)
	if l.Address == e.epochs.Address {
		l.Address = "" // this replica is taking over: try again soon
	}
	return l.Address, l.Epoch, err
}

// Raise implements quota.Elector.
func (e *elector) Raise(ctx context.Context, floor uint64) error {
	epoch, _, err := e.epochs.Begin(ctx, floor)
	if err != nil {
		return err
	}
	e.home.Raise(epoch)
	return nil
}
