// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// Run makes rounds, on change and once a second, until the context ends.
func (h *Home) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var feeding sync.WaitGroup
	feeding.Go(func() { h.feedAll(ctx) })
	defer feeding.Wait()
	for {
		var cool <-chan time.Time
		if d, ok := h.nextCool(); ok {
			timer := time.NewTimer(d)
			defer timer.Stop()
			cool = timer.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			h.inspect()
		case <-cool:
		case <-h.wake:
			settle := time.NewTimer(coalesce)
			select {
			case <-settle.C:
			case <-ctx.Done():
				settle.Stop()
				return nil
			}
		}
		h.round()
	}
}

// nextCool is how long until freed capacity may go to shares that exist, if that is within the second.
func (h *Home) nextCool() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	best, found := time.Second, false
	now := h.opts.Now()
	for _, p := range h.policies {
		for _, a := range p.accounts {
			if at, ok := a.next(); ok {
				if d := time.Duration(at - now); d < best {
					best, found = max(d, 0), true
				}
			}
		}
	}
	return best, found
}

// inspect closes streams that have gone quiet, notes apps that have been unready for long, and looks for proof that silent
// processes have ended.
func (h *Home) inspect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	for uid, pod := range h.pods {
		if s := pod.session; s != nil && s.stalled(now) {
			s.close()
		}
		h.assess(uid, pod)
	}
	for _, p := range h.policies {
		for _, a := range p.accounts {
			if a.lending != nil {
				a.lending.forget(now)
				a.dirty = true
			}
		}
	}
	for key, at := range h.buried {
		if time.Duration(now-at) > 366*24*time.Hour {
			delete(h.buried, key)
		}
	}
}

// round plans every limit that something happened to and hands the streams what has changed.
func (h *Home) round() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading || !h.sure() {
		return
	}
	h.seq++
	now := h.opts.Now()
	for _, p := range h.policies {
		moved := false
		for _, a := range p.accounts {
			at, cools := a.next()
			due := a.dirty || cools && at <= now
			if a.ledger == nil {
				if a.lending != nil && due {
					h.lease(a.lending, now)
					h.flush(a, now)
				}
				a.dirty = false
				continue
			}
			if !due || a.waits() {
				continue
			}
			a.dirty = false
			moved = len(a.ledger.Plan(h.seq, now)) > 0 || moved
		}
		if moved {
			h.opts.Changed(p.key)
		}
	}
	for uid, pod := range h.pods {
		if pod.session != nil && pod.observed {
			h.assign(uid, pod)
		}
	}
}

// assign offers the pod's stream its assignment, unless it is the one offered last.
func (h *Home) assign(uid types.UID, pod *pod) {
	s := pod.session
	snapshot := h.snapshot(pod)
	var shares []*quotav1.Share
	id := holderID(uid, s.incarnation)
	h.covering(pod, func(p *policy, a *account) {
		if sh, ok := a.share(id); ok && p.accounts[a.limit.Id] == a {
			shares = append(shares, sh)
		}
	})
	slices.SortFunc(shares, func(a, b *quotav1.Share) int { return strings.Compare(a.LimitId, b.LimitId) })
	leaving := pod.state.Terminating || pod.state.Deleted
	s.offer(&quotav1.Assignment{Epoch: h.epoch, Seq: h.seq, Snapshot: snapshot, Shares: shares, Leaving: leaving}, h.opts.Now())
}

// want is what the pod asks the ledgers for.
func (h *Home) want(pod *pod) escrow.Want {
	switch {
	case pod.session == nil || !pod.observed:
		return escrow.WantNone
	case pod.session.quiet:
		return escrow.WantNone
	case pod.session.draining || pod.state.Terminating || pod.state.Deleted:
		return escrow.WantKeep
	case pod.unreadySince == 0 || time.Duration(h.opts.Now()-pod.unreadySince) < flap && pod.session.served:
		return escrow.WantFull
	}
	return escrow.WantNone
}

// assess applies what is known of a pod now to the ledgers: what it wants, and which of its processes have ended.
func (h *Home) assess(uid types.UID, pod *pod) {
	node, known := h.nodes[pod.state.Node]
	for _, name := range slices.Sorted(maps.Keys(pod.processes)) {
		if pod.session != nil && pod.session.incarnation == name {
			continue // it speaks
		}
		if why := proofOfEnd(*pod.processes[name], &pod.state, node, known); why != "" {
			h.ended(uid, pod, name)
		}
	}
	if pod.session == nil && !mayRun(&pod.state, node, known) {
		h.absent(uid, pod)
	}
	if pod.session != nil {
		w := h.want(pod)
		if w != pod.session.want {
			pod.session.want = w
			id := holderID(uid, pod.session.incarnation)
			h.covering(pod, func(_ *policy, a *account) {
				if a.ledger != nil {
					a.ledger.SetWant(id, w)
				}
				a.dirty = true
			})
			h.poke()
		}
	}
	h.forget(uid, pod)
}

// absent notes that no process of the pod that has not been heard of can be running.
func (h *Home) absent(uid types.UID, pod *pod) {
	if pod.unheard {
		pod.unheard = false
		h.changed(pod)
		h.poke()
	}
	h.covering(pod, func(_ *policy, a *account) {
		a.absent(string(uid), h.opts.Now())
	})
}

// forget drops a pod whose object is gone and that can hold nothing. A replica that does not lead cannot tell, and remembers it
// for a while.
func (h *Home) forget(uid types.UID, pod *pod) {
	if !pod.state.Deleted || len(pod.processes) > 0 || pod.session != nil || pod.unheard {
		return
	}
	node, known := h.nodes[pod.state.Node]
	if h.leading || !mayRun(&pod.state, node, known) {
		delete(h.pods, uid)
	}
}

// ended frees what a process had.
func (h *Home) ended(uid types.UID, pod *pod, incarnation string) {
	delete(pod.processes, incarnation)
	h.covering(pod, func(_ *policy, a *account) {
		a.gone(holderID(uid, incarnation), h.opts.Now())
	})
	h.changed(pod)
	h.poke()
}
