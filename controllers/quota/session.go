// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// session is one stream of one process. Everything is guarded by the home's lock.
type session struct {
	incarnation string
	hello       *quotav1.Hello
	close       func() // ends the stream; may be called often
	ready       chan struct{}

	want     escrow.Want
	draining bool
	quiet    bool // draining, and nothing was asked of it between two heartbeats: nobody comes any more
	served   bool // it has had a share

	next      *quotav1.Assignment // offered and not yet sent
	last      *quotav1.Assignment // offered last
	heartbeat *quotav1.HeartbeatAck
	orders    outbox

	sentVersion   string
	acked         uint64
	ackedVersion  string
	ackedPolicies map[string]int64 // policy UID -> generation in force
	versions      map[string]*quotav1.Snapshot
	heard         int64
	waitingSince  int64 // since when an assignment has been without acknowledgement; 0 = none
	usage         map[string]*quotav1.LimitUsage
}

// stalled reports whether the process has been quiet, or an assignment unacknowledged, for too long.
func (s *session) stalled(now int64) bool {
	return time.Duration(now-s.heard) > silence || s.waitingSince != 0 && time.Duration(now-s.waitingSince) > patience
}

// offer replaces what waits to be sent. A newer assignment always covers an older one.
func (s *session) offer(a *quotav1.Assignment, now int64) {
	if s.last != nil && sameContent(s.last, a) {
		return
	}
	s.last, s.next = a, a
	s.versions[a.Snapshot.Version] = a.Snapshot
	if s.waitingSince == 0 {
		s.waitingSince = now
	}
	s.served = s.served || len(a.Shares) > 0
	s.signal()
}

func sameContent(a, b *quotav1.Assignment) bool {
	if a.Snapshot.Version != b.Snapshot.Version || a.Leaving != b.Leaving || len(a.Shares) != len(b.Shares) {
		return false
	}
	for i := range a.Shares {
		if !proto.Equal(a.Shares[i], b.Shares[i]) {
			return false
		}
	}
	return true
}

func (s *session) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// errRefused is what a process is told that breaks the contract.
var errRefused = errors.New("refused")

// attach takes in a new stream of a pod, in place of any older one.
func (h *Home) attach(uid types.UID, hello *quotav1.Hello, closeStream func()) (*session, error) {
	if hello.Incarnation == "" || len(hello.Incarnation) > 64 {
		return nil, fmt.Errorf("%w: incarnation must have 1 to 64 characters", errRefused)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pod(uid)
	if p.session != nil {
		p.session.close()
		h.detachLocked(uid, p, p.session)
	}
	s := &session{
		incarnation: hello.Incarnation, hello: hello, close: closeStream, ready: make(chan struct{}, 1),
		draining: hello.Draining, served: len(hello.Holdings) > 0, heard: h.opts.Now(),
		versions: map[string]*quotav1.Snapshot{}, usage: map[string]*quotav1.LimitUsage{}, orders: newOutbox(),
	}
	p.session = s
	h.sessions[holderID(uid, s.incarnation)] = s
	if p.observed {
		h.register(uid, p)
		h.assess(uid, p)
	}
	h.poke()
	return s, nil
}

// register joins the pod's process to every ledger that covers it.
func (h *Home) register(uid types.UID, p *pod) {
	s := p.session
	p.unheard = false
	if p.processes[s.incarnation] == nil {
		p.processes[s.incarnation] = &process{
			incarnation: s.incarnation, started: s.hello.StartedAt.AsTime(), bootID: h.nodes[p.state.Node].BootID, demand: demand{},
		}
	}
	s.want = h.want(p)
	if h.leading {
		h.recall(uid, p)
	}
	h.covering(p, func(_ *policy, a *account) { h.join(a, uid, p) })
	h.changed(p)
}

// join takes the pod's process into one ledger, with what it said it holds when the stream began.
func (h *Home) join(a *account, uid types.UID, p *pod) {
	a.dirty = true
	if a.ledger == nil {
		return
	}
	units := uint64(0)
	for _, held := range p.session.hello.Holdings {
		if held.LimitId == a.limit.Id {
			units = min(held.Units, quotav1.Whole)
		}
	}
	id, now := holderID(uid, p.session.incarnation), h.opts.Now()
	a.ledger.Join(id, units, now)
	a.ledger.Register(string(uid), units, now)
	a.ledger.SetWant(id, p.session.want)
}

// detach notes the end of a stream. The process keeps its share.
func (h *Home) detach(uid types.UID, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pods[uid]; p != nil && p.session == s {
		h.detachLocked(uid, p, s)
		h.assess(uid, p)
		if !p.observed {
			delete(h.pods, uid) // nothing was granted
		}
	}
}

func (h *Home) detachLocked(uid types.UID, p *pod, s *session) {
	p.session = nil
	h.disown(uid, s)
	h.covering(p, func(_ *policy, a *account) {
		if a.ledger != nil {
			a.ledger.Disconnect(holderID(uid, s.incarnation))
		}
		a.dirty = true
	})
	h.changed(p)
	h.poke()
}

// disown notes that nothing can be sent to a process.
func (h *Home) disown(uid types.UID, s *session) {
	if id := holderID(uid, s.incarnation); h.sessions[id] == s {
		delete(h.sessions, id)
	}
}

// granted returns what waits to be sent about limits that are lent, nil for nothing.
func (h *Home) granted(s *session) *quotav1.Grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading || !h.sure() {
		return nil
	}
	return s.orders.take(h.epoch)
}

// take returns what waits to be sent, with the snapshot left out when this stream has had it.
func (h *Home) take(s *session) (a *quotav1.Assignment, beat *quotav1.HeartbeatAck) {
	h.mu.Lock()
	defer h.mu.Unlock()
	beat, s.heartbeat = s.heartbeat, nil
	if s.next == nil || !h.leading || !h.sure() {
		return nil, beat
	}
	a = &quotav1.Assignment{Epoch: s.next.Epoch, Seq: s.next.Seq, Snapshot: s.next.Snapshot, Shares: s.next.Shares, Leaving: s.next.Leaving}
	s.next = nil
	if a.Snapshot.Version == s.sentVersion {
		a.Snapshot = nil
	} else {
		s.sentVersion = a.Snapshot.Version
	}
	return a, beat
}

// ack takes in an acknowledgement.
func (h *Home) ack(uid types.UID, s *session, ack *quotav1.Ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[uid]
	if p == nil || p.session != s || s.last == nil || ack.Epoch != h.epoch || ack.Seq > s.last.Seq || ack.Seq <= s.acked {
		return
	}
	now := h.opts.Now()
	s.heard, s.acked = now, ack.Seq
	if s.acked == s.last.Seq {
		observeAck(time.Duration(now - s.waitingSince))
		s.waitingSince = 0
	}
	if snap := s.versions[ack.SnapshotVersion]; snap != nil && ack.SnapshotVersion != s.ackedVersion {
		s.ackedVersion, s.ackedPolicies = ack.SnapshotVersion, map[string]int64{}
		for _, pol := range snap.Policies {
			s.ackedPolicies[pol.Uid] = pol.Generation
		}
		clear(s.versions)
		s.versions[snap.Version] = snap
		s.versions[s.last.Snapshot.Version] = s.last.Snapshot
		h.outgrown(uid, s, snap)
	}
	id := holderID(uid, s.incarnation)
	h.covering(p, func(_ *policy, a *account) {
		if a.ledger != nil {
			a.ledger.Ack(id, ack.Seq, now)
		}
		a.dirty = true
	})
	h.changed(p)
	h.poke()
}

// outgrown frees what a process had of limits that are neither in the snapshot that it has put in force nor in the one that
// it is sent: no decision can use them any more.
func (h *Home) outgrown(uid types.UID, s *session, inForce *quotav1.Snapshot) {
	id, now := holderID(uid, s.incarnation), h.opts.Now()
	has := map[string]bool{}
	for _, snap := range []*quotav1.Snapshot{inForce, s.last.Snapshot} {
		for _, p := range snap.Policies {
			for _, l := range p.Limits {
				has[l.Id] = true
			}
		}
	}
	for _, p := range h.policies {
		for limit, a := range p.accounts {
			if !has[limit] && a.knows(id) {
				a.gone(id, now)
			}
		}
		for limit, a := range p.retired {
			if !has[limit] && a.knows(id) {
				a.gone(id, now)
			}
			if !a.inUse() {
				delete(p.retired, limit)
				for _, next := range p.accounts {
					next.dirty = true
				}
				h.poke()
			}
		}
	}
}

// report takes in a heartbeat.
func (h *Home) report(uid types.UID, s *session, u *quotav1.Usage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[uid]
	if p == nil || p.session != s {
		return
	}
	s.heard = h.opts.Now()
	s.heartbeat = &quotav1.HeartbeatAck{Nonce: u.Nonce}
	quiet := s.draining && u.Draining
	for _, l := range u.Limits {
		before := s.usage[l.LimitId]
		quiet = quiet && l.Admitted == before.GetAdmitted() && l.Denied == before.GetDenied()
		if _, known := s.usage[l.LimitId]; known || len(s.usage) < maxUsage {
			s.usage[l.LimitId] = l
		}
	}
	if process := p.processes[s.incarnation]; process != nil {
		process.demand.note(u.Limits, s.heard)
	}
	if u.Draining && !s.draining || quiet && !s.quiet {
		s.draining, s.quiet = true, quiet
		h.assess(uid, p)
	}
	s.signal()
}

// maxUsage bounds the counters kept of one stream: 16 policies of 32 limits.
const maxUsage = 512

// drained takes in the final report of a process, with its last claims.
func (h *Home) drained(uid types.UID, s *session, last *quotav1.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[uid]
	if p == nil || p.session != s {
		return
	}
	if last != nil && last.Epoch == h.epoch && h.leading {
		h.hearLocked(uid, p, s, last)
	}
	p.session = nil
	h.disown(uid, s)
	h.ended(uid, p, s.incarnation)
	h.assess(uid, p)
}
