// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ObservePod takes in what the API server says of a pod now.
func (h *Home) ObservePod(s PodState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pod(s.UID)
	before := p.state
	p.state, p.compiled = s, nil
	if s.AppReady {
		p.unreadySince = 0
	} else if before.AppReady || !p.observed {
		p.unreadySince = h.opts.Now()
	}
	if !p.observed {
		p.observed = true
		if p.session != nil {
			h.register(s.UID, p)
		}
	}
	h.assess(s.UID, p)
	if !sameForStatus(&before, &s) {
		h.changed(p)
	}
}

// sameForStatus reports whether two states of a pod look the same in the status of its policies.
func sameForStatus(a, b *PodState) bool {
	return a.UID == b.UID && a.Injected == b.Injected && a.AppReady == b.AppReady && a.Ready == b.Ready &&
		a.Terminating == b.Terminating && a.Ended == b.Ended && a.Deleted == b.Deleted && a.Scheduled == b.Scheduled
}

// ForgetPod notes that a pod's object is gone; last is its last known state. Its share stays reserved until its processes
// are proven to have ended.
func (h *Home) ForgetPod(last PodState) {
	last.Deleted = true
	h.ObservePod(last)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leading {
		return
	}
	now := h.opts.Now()
	h.deleted = append(h.deleted, deletion{last.UID, now})
	for len(h.deleted) > 0 && time.Duration(now-h.deleted[0].at) > lately {
		if p := h.pods[h.deleted[0].pod]; p != nil && p.state.Deleted && !p.unheard {
			delete(h.pods, h.deleted[0].pod)
		}
		h.deleted = h.deleted[1:]
	}
}

// deletion is when a pod's object went away.
type deletion struct {
	pod types.UID
	at  int64
}

// lately is for how long a replica that does not lead remembers deleted pods. Whatever happened before, the leader has written
// into the status of the policies, or somebody else leads.
const lately = 15 * time.Second

// Suspect notes a pod whose object was deleted under an earlier leader, which had no proof that its processes have ended
// (RateLimitPolicyStatus.Reserved). Call it before Lead.
func (h *Home) Suspect(s PodState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[s.UID]
	if p == nil {
		p = h.pod(s.UID)
		p.observed, p.state = true, s
		p.state.Deleted, p.state.Injected, p.state.Scheduled = true, true, true
	} else if p.state.Deleted {
		p.state.BootID = s.BootID
		for _, w := range s.Owners {
			if !slices.Contains(p.state.Owners, w) {
				p.state.Owners = append(slices.Clip(p.state.Owners), w)
			}
		}
	}
	p.unheard = true
}

// ObserveNode takes in what the API server says of a node now.
func (h *Home) ObserveNode(n NodeState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[n.Name] == n {
		return
	}
	h.nodes[n.Name] = n
	for uid, p := range h.pods {
		if p.state.Node == n.Name {
			silent := p.session == nil && (len(p.processes) > 0 || p.unheard)
			h.assess(uid, p)
			if silent {
				h.changed(p) // what its share waits for may have changed
			}
		}
	}
}

// Release notes that a person has declared a pod's processes ended. It reports whether there was anything to release: a pod
// that speaks has not ended, whatever a person says.
func (h *Home) Release(key types.NamespacedName) (released bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, p := range h.pods {
		if p.state.Namespace != key.Namespace || p.state.Name != key.Name || p.session != nil {
			continue
		}
		released = true
		for name := range p.processes {
			h.ended(uid, p, name)
		}
		h.absent(uid, p)
		h.changed(p)
		h.poke()
		h.forget(uid, p)
	}
	return released
}

func (h *Home) pod(uid types.UID) *pod {
	p := h.pods[uid]
	if p == nil {
		p = &pod{processes: map[string]*process{}}
		h.pods[uid] = p
	}
	return p
}
