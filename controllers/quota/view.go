// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is what the pods of a policy enforce now.
type View struct {
	// Leading says whether this process knows: only the leader does. Published says whether the policy has been published.
	Leading, Published bool
	// Pods are those that live, Bare those of them without the sidecar (that leave: not counted), Acked those that enforce the
	// asked generation.
	Pods, Acked int
	Bare        []string
	// Waiting are pods whose app is ready and whose sidecar has not acknowledged the asked generation.
	Waiting []string
	// Reserved are pods that hold a share and cannot be reached.
	Reserved []Reservation
	// Limits are the shares, by limit id.
	Limits map[string]LimitView
}

// Reservation is a pod whose share is kept for it though it cannot be reached.
type Reservation struct {
	Pod string
	UID types.UID
	// Node is where it runs, and BootID that of the node when the pod was last heard of.
	Node, BootID string
	// Deleted says that its object is gone.
	Deleted bool
	// Awaits says what would free the share.
	Awaits string
}

// LimitView is how one limit is shared.
type LimitView struct {
	// N is how many pods share it; Units what the smallest share in force is, of quotav1.Whole.
	N     int
	Units uint64
	// Settled says that every connected pod has acknowledged its newest share.
	Settled bool
}

// View tells how a policy stands.
func (h *Home) View(uid types.UID, generation int64) View {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := View{Leading: h.leading, Limits: map[string]LimitView{}}
	p := h.policies[uid]
	if p == nil {
		return v
	}
	v.Published = true
	smallest := map[string]uint64{}
	for podUID, pod := range h.pods {
		if !pod.covered(p) {
			continue
		}
		h.viewPod(&v, p, podUID, pod, generation, smallest)
	}
	for id, a := range p.accounts {
		lv := LimitView{Units: smallest[id], Settled: true, N: v.Acked}
		switch {
		case a.ledger != nil:
			lv.N, lv.Settled = a.ledger.N(), a.ledger.Settled()
		case a.lending != nil:
			lv.N, lv.Settled = a.lending.fleet.N(), a.lending.fleet.Settled()
		}
		v.Limits[id] = lv
	}
	slices.Sort(v.Bare)
	slices.Sort(v.Waiting)
	slices.SortFunc(v.Reserved, func(a, b Reservation) int { return strings.Compare(a.Pod, b.Pod) })
	return v
}

// holds reports whether a process of the pod that cannot be reached may have something of the policy's limits. Pods that have
// yet to come to a new leader are given the time for it.
func (h *Home) holds(pod *pod, p *policy, uid types.UID) bool {
	if pod.unheard && (pod.state.Deleted || time.Duration(h.opts.Now()-h.since) > 2*silence) {
		for _, a := range p.accounts {
			if a.unheard(string(uid)) {
				return true
			}
		}
	}
	for name := range pod.processes {
		if pod.session != nil && pod.session.incarnation == name {
			continue
		}
		id := holderID(uid, name)
		for _, a := range p.accounts {
			if a.ledger != nil && slices.Contains(a.ledger.Silent(), id) || a.lending != nil && a.lending.fleet.Holds(id) {
				return true
			}
		}
	}
	return false
}

func (h *Home) viewPod(v *View, p *policy, uid types.UID, pod *pod, generation int64, smallest map[string]uint64) {
	if h.holds(pod, p, uid) {
		node, known := h.nodes[pod.state.Node]
		r := Reservation{
			Pod: pod.state.Name, UID: uid, Node: pod.state.Node, BootID: pod.state.BootID, Deleted: pod.state.Deleted,
			Awaits: awaits(&pod.state, node, known),
		}
		for _, process := range pod.processes {
			r.BootID = cmp.Or(process.bootID, r.BootID)
		}
		v.Reserved = append(v.Reserved, r)
	}
	if pod.state.Deleted || pod.state.Ended || !pod.state.Scheduled {
		return
	}
	if !pod.state.Injected {
		if !pod.state.Terminating { // nobody can do anything about one that leaves
			v.Pods++
			v.Bare = append(v.Bare, pod.state.Name)
		}
		return
	}
	v.Pods++
	s := pod.session
	enforcing := s != nil && s.ackedPolicies[p.compiled.Uid] >= generation && generation > 0
	for _, a := range p.accounts {
		if enforcing && a.lending != nil {
			_, enforcing = a.lending.fleet.Share(holderID(uid, s.incarnation))
		}
	}
	if enforcing {
		v.Acked++
	}
	if pod.state.Terminating {
		return // it leaves; nothing waits for it
	}
	if !enforcing {
		if pod.state.AppReady {
			v.Waiting = append(v.Waiting, pod.state.Name)
		}
		return
	}
	for id, a := range p.accounts {
		var units uint64
		switch {
		case a.ledger != nil:
			units = a.ledger.Acked(holderID(uid, s.incarnation))
		case a.lending != nil:
			units, _ = a.lending.fleet.Share(holderID(uid, s.incarnation))
		}
		if old, ok := smallest[id]; units > 0 && (!ok || units < old) {
			smallest[id] = units
		}
	}
}
