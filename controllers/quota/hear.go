// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// hear takes in what a process says about the limits that are lent, and lends.
func (h *Home) hear(uid types.UID, s *session, r *quotav1.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[uid]
	if p == nil || p.session != s || !p.observed || r.GetEpoch() != h.epoch || !h.leading {
		return
	}
	h.hearLocked(uid, p, s, r)
}

func (h *Home) hearLocked(uid types.UID, p *pod, s *session, r *quotav1.Report) {
	now := h.opts.Now()
	s.heard = now
	id := holderID(uid, s.incarnation)
	for _, l := range r.GetLimits() {
		a := h.account(p, l.GetLimitId())
		if a == nil || a.lending == nil {
			continue // of a snapshot that is not in force any more, or never was
		}
		b := a.lending
		h.lease(b, now)
		if l.GetBeat() != nil {
			known := b.fleet.Knows(id)
			if l.GetHello() || known {
				b.fleet.Hello(id, string(uid), beatOf(h.epoch, l.GetBeat()), now)
			}
			if !known && b.fleet.Knows(id) || l.GetBeat().GetAcked() > s.orders.acked[b.id] {
				s.orders.acknowledged(b.id, l.GetBeat().GetAcked(), now)
				h.changed(p)
			}
		}
		for _, c := range l.GetClaims() {
			if !b.fleet.Knows(id) {
				break
			}
			if m := b.mint(c.GetKey(), now); m != nil {
				m.Claim(id, claimOf(h.epoch, c), now)
				h.lend(a, string(c.GetKey()), m, now)
			} else {
				accountsRefused.Inc()
			}
		}
		h.flush(a, now)
	}
}

// account finds a limit that covers the pod.
func (h *Home) account(p *pod, id string) *account {
	for _, pol := range h.policies {
		if a := pol.accounts[id]; a != nil && p.covered(pol) {
			return a
		}
	}
	return nil
}

// lease lets a limit's fleet go on for as long as this replica is certain to lead.
func (h *Home) lease(b *lending, now int64) {
	if until := h.opts.LeaseUntil(); until > now {
		b.fleet.Lease(until, now)
	}
}

// flush hands the streams what is due about shares.
func (h *Home) flush(a *account, now int64) {
	if a.waits() {
		return
	}
	b := a.lending
	b.fleet.Flush(now, func(id string, o escrow.Order) {
		if s := h.sessions[id]; s != nil {
			s.orders.order(b.id, orderOf(o), now)
			s.signal()
		}
	})
}

// lend hands the streams the loans of one account that are due, and notes when there will be more.
func (h *Home) lend(a *account, key string, m *escrow.Mint, now int64) {
	if a.waits() {
		return
	}
	b := a.lending
	m.Lend(now, func(id string, l escrow.Loan) {
		if s := h.sessions[id]; s != nil {
			s.orders.loan(b.id, key, &quotav1.Loan{Key: []byte(key), Born: l.Born, Granted: l.Granted, Recall: l.Recall, Scarce: l.Scarce})
			s.signal()
		}
	})
	if _, ok := m.Next(); !ok {
		delete(h.hungry, m)
		return
	}
	if len(h.hungry) == 0 {
		select {
		case h.feed <- struct{}{}:
		default:
		}
	}
	h.hungry[m] = hunger{a, key}
}

// hunger is an account in which somebody wants more than there was.
type hunger struct {
	account *account
	key     string
}
