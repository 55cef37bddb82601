// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/target"
	"github.com/headgate/headgate/limiter/escrow"
)

// Options of a Home.
type Options struct {
	// Now is the monotonic clock, in nanoseconds.
	Now func() int64
	// LeaseUntil is until when this process is certain to be the leader, on the clock of Now: it stops moving capacity
	// before its lease can have passed on. It is in the past where the process does not lead.
	LeaseUntil func() int64
	// Changed is called, with the lock held, when what View says of a policy may have changed. It must not block.
	Changed func(types.NamespacedName)
}

// Home is where the mint lives: every limit's ledger, every pod and every stream. See the package documentation.
type Home struct {
	opts Options

	mu       sync.Mutex
	leading  bool
	epoch    uint64
	seq      uint64
	policies map[types.UID]*policy
	pods     map[types.UID]*pod
	nodes    map[string]NodeState
	sessions map[string]*session // by holder
	hungry   map[*escrow.Mint]hunger
	buried   map[types.NamespacedName]int64 // when a policy of this name was withdrawn
	deleted  []deletion                     // of pods, lately, as this replica saw them while it did not lead
	since    int64                          // when it began to lead
	revision uint64                         // counts the changes of policies
	left     Handover                       // while Lead takes it in
	wake     chan struct{}
	feed     chan struct{}
}

// policy is a published policy.
type policy struct {
	key      types.NamespacedName
	targets  []target.Workload
	compiled *quotav1.Policy
	accounts map[string]*account // by limit id
	// retired are accounts of limits that are not in the policy any more and that pods may still act on.
	retired map[string]*account
	first   bool // its first accounts are to be filled
}

// pod is a pod with what is known of its sidecar's processes.
type pod struct {
	state        PodState
	observed     bool
	unreadySince int64 // 0 while the app is ready
	processes    map[string]*process
	session      *session
	unheard      bool // it may hold what it had under an earlier leader

	compiled *quotav1.Snapshot // what it shall enforce, as of revision
	revision uint64
}

// NewHome returns a home that does not lead.
func NewHome(opts Options) *Home {
	return &Home{
		opts:     opts,
		policies: map[types.UID]*policy{},
		pods:     map[types.UID]*pod{},
		nodes:    map[string]NodeState{},
		sessions: map[string]*session{},
		hungry:   map[*escrow.Mint]hunger{},
		buried:   map[types.NamespacedName]int64{},
		wake:     make(chan struct{}, 1),
		feed:     make(chan struct{}, 1),
	}
}

// Lead makes this home the mint, once every policy that exists has been published and every pod and node observed. Each pod
// that may run and has not reported is assumed to hold whatever the others do not. left is the last word of the leader
// directly before.
func (h *Home) Lead(epoch uint64, left Handover) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leading, h.epoch, h.since = true, epoch, h.opts.Now()
	h.left = left
	defer func() { h.left = Handover{} }()
	for _, p := range h.policies {
		p.accounts, p.retired = map[string]*account{}, map[string]*account{}
		h.openAccounts(p)
		h.opts.Changed(p.key)
	}
	h.poke()
}

// Raise takes a higher epoch. Every stream ends, since all that was sent belongs to the older one; the pods come back, adopt
// the epoch and report.
func (h *Home) Raise(epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch = max(h.epoch, epoch)
	for _, p := range h.policies {
		for _, a := range p.accounts {
			if a.lending != nil {
				a.lending.fleet.Raise(h.epoch)
			}
		}
	}
	for _, pod := range h.pods {
		if pod.session != nil {
			pod.session.close()
		}
	}
}

// sure reports whether this process is still certain to be the leader.
func (h *Home) sure() bool { return h.opts.Now() < h.opts.LeaseUntil() }

// Leading returns the epoch, and whether this home may move capacity now.
func (h *Home) Leading() (epoch uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.epoch, h.leading && h.sure()
}

// Publish makes a compiled policy what the pods of its targets enforce. first says that the policy has just been marked,
// durably, as having had its first fill. A policy withdrawn under the same name earns its fill only from then on.
func (h *Home) Publish(compiled *quotav1.Policy, targets []target.Workload, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid := types.UID(compiled.Uid)
	p := h.policies[uid]
	if p == nil {
		key := types.NamespacedName{Namespace: compiled.Namespace, Name: compiled.Name}
		h.withdraw(key) // re-created under the same name, and nobody saw it gone
		p = &policy{key: key, accounts: map[string]*account{}, retired: map[string]*account{}}
		h.policies[uid] = p
	}
	p.first = p.first || first
	if !proto.Equal(p.compiled, compiled) || !slices.Equal(p.targets, targets) {
		p.compiled, p.targets = compiled, targets
		h.revision++
		h.opts.Changed(p.key)
	}
	if h.leading {
		h.openAccounts(p)
	}
	h.poke()
}

// Withdraw takes a policy away: its pods stop enforcing it.
func (h *Home) Withdraw(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdraw(key)
}

func (h *Home) withdraw(key types.NamespacedName) {
	for uid, p := range h.policies {
		if p.key == key {
			delete(h.policies, uid)
			for m, who := range h.hungry {
				if p.accounts[who.account.limit.Id] == who.account {
					delete(h.hungry, m)
				}
			}
			h.buried[key] = h.opts.Now()
			h.revision++
			h.poke()
		}
	}
}

// openAccounts gives every limit of a policy its account, and joins the pods that are connected.
func (h *Home) openAccounts(p *policy) {
	keep := map[string]bool{}
	met := len(p.accounts) == 0 && !p.first // pods may have been enforcing it before
	for _, l := range p.compiled.Limits {
		keep[l.Id] = true
		if a := p.accounts[l.Id]; a != nil {
			a.update(l, h.opts.Now())
			a.dirty = true
			continue
		}
		fill := uint64(0)
		if p.first {
			fill = quotav1.Whole
			if at, ok := h.buried[p.key]; ok {
				fill = minted(l, h.opts.Now()-at)
			}
		}
		var unregistered []string
		if !p.first {
			unregistered = h.unheard(p)
		}
		a := h.newAccount(p, l, fill, unregistered)
		p.accounts[l.Id] = a
		for uid, pod := range h.pods {
			if pod.session != nil && pod.covered(p) {
				h.join(a, uid, pod)
			}
		}
		a.dirty = true
	}
	for id, a := range p.accounts {
		if !keep[id] {
			h.retire(p, id, a)
		}
	}
	if met {
		for uid, pod := range h.pods {
			if pod.session != nil {
				h.recall(uid, pod)
			}
		}
	}
	p.first = false
}

// retire takes a limit out of its policy. Where it goes on under another strategy, its new life waits for it.
func (h *Home) retire(p *policy, id string, a *account) {
	delete(p.accounts, id)
	if !a.inUse() {
		return
	}
	p.retired[id] = a
	for _, next := range p.accounts {
		same := next.limit.Name == a.limit.Name && next.limit.GetVariant().GetName() == a.limit.GetVariant().GetName()
		if same && next.limit.Strategy != a.limit.Strategy {
			next.from = append(next.from, a)
		}
	}
}

// newAccount begins a limit, that of equal shares with fill units of its burst, or one that is lent.
func (h *Home) newAccount(p *policy, l *quotav1.Limit, fill uint64, unregistered []string) *account {
	if l.Strategy != quotav1.Strategy_ADAPTIVE || l.Scope == quotav1.Scope_PER_POD {
		return newAccount(l, fill, unregistered)
	}
	now := h.opts.Now()
	r := escrow.Recovery{Epoch: h.epoch, Existing: unregistered}
	switch {
	case p.first && fill == quotav1.Whole:
		r.First = true
	case p.first: // what its predecessor under the same name would have earned since
		r.Rest = &escrow.Remainder{Level: int64(part(l.Burst*escrow.Micro, fill))}
	}
	var accounts map[string]escrow.Remainder
	if left, ok := h.left.Limits[digest(l.Id)]; ok && !p.first {
		r.Rest, r.Unshared, r.Ceiling, r.CeilingOutstanding = &left.Rest, !left.Shared, left.Ceiling, left.Outstanding
		accounts = left.accounts()
	}
	a := &account{limit: l, lending: newLending(l, r, accounts, now)}
	h.lease(a.lending, now)
	return a
}

// unheard lists the pods of a policy whose sidecar may run and has not registered. It is asked only when this leader meets
// a limit that pods may have been enforcing before.
func (h *Home) unheard(p *policy) []string {
	if len(p.accounts) > 0 {
		return nil // this leader opened the policy's accounts itself: a new limit is held by nobody
	}
	var ids []string
	for uid, pod := range h.pods {
		node, known := h.nodes[pod.state.Node]
		if pod.session == nil && pod.covered(p) && mayRun(&pod.state, node, known) {
			pod.unheard = true
			ids = append(ids, string(uid))
		}
	}
	return ids
}

func (pod *pod) covered(p *policy) bool {
	_, ok := pod.target(p)
	return ok
}

// target is the workload for which a policy covers the pod, if it does.
func (pod *pod) target(p *policy) (target.Workload, bool) {
	for _, w := range p.targets {
		if slices.Contains(pod.state.Owners, w) {
			return w, true
		}
	}
	return target.Workload{}, false
}

// covering calls f for each account that covers the pod.
func (h *Home) covering(pod *pod, f func(*policy, *account)) {
	for _, p := range h.policies {
		if pod.covered(p) {
			for _, a := range p.accounts {
				f(p, a)
			}
			for _, a := range p.retired {
				f(p, a)
			}
		}
	}
}

// snapshot is what the pod shall enforce.
func (h *Home) snapshot(pod *pod) *quotav1.Snapshot {
	if pod.compiled != nil && pod.revision == h.revision {
		return pod.compiled
	}
	var compiled []*quotav1.Policy
	for _, p := range h.policies {
		if pod.covered(p) {
			compiled = append(compiled, p.compiled)
		}
	}
	pod.compiled, pod.revision = compile.Snapshot(compiled...), h.revision
	return pod.compiled
}

// changed tells the reconcilers of the policies that cover the pod.
func (h *Home) changed(pod *pod) {
	for _, p := range h.policies {
		if pod.covered(p) {
			h.opts.Changed(p.key)
		}
	}
}

// poke asks Run for a round soon. The lock is held.
func (h *Home) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// holderID names a process in a ledger.
func holderID(uid types.UID, incarnation string) string { return string(uid) + "/" + incarnation }

const (
	// heartbeat is how often a sidecar reports when nothing happens.
	heartbeat = time.Second
	// silence is how long a stream may say nothing before it is closed; the share stays with the pod.
	silence = 4 * heartbeat
	// patience is how long an assignment may stay unacknowledged before the stream is closed.
	patience = 5 * time.Second
	// flap is how long an app may be unready before its share goes to the others.
	flap = 10 * time.Second
	// coalesce is how long a round waits for more to happen, so that a burst of joins costs one round.
	coalesce = 2 * time.Millisecond
)
