// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// outbox is what waits to be sent to a process about limits that are lent. A newer word always covers an older one, so that a
// slow stream costs no memory.
type outbox struct {
	limits map[string]*quotav1.LimitGrant
	loans  map[string]map[string]*quotav1.Loan
	sent   map[string]sentOrder
	acked  map[string]uint64
}

// sentOrder is the newest order of another content than the one before.
type sentOrder struct {
	seq uint64
	at  int64
}

func newOutbox() outbox {
	return outbox{
		limits: map[string]*quotav1.LimitGrant{}, loans: map[string]map[string]*quotav1.Loan{},
		sent: map[string]sentOrder{}, acked: map[string]uint64{},
	}
}

func (o *outbox) of(limit string) *quotav1.LimitGrant {
	g := o.limits[limit]
	if g == nil {
		g = &quotav1.LimitGrant{LimitId: limit}
		o.limits[limit] = g
	}
	return g
}

func (o *outbox) order(limit string, order *quotav1.Order, now int64) {
	o.of(limit).Order = order
	if order.Seq > o.sent[limit].seq {
		o.sent[limit] = sentOrder{order.Seq, now}
	}
}

func (o *outbox) loan(limit, key string, l *quotav1.Loan) {
	o.of(limit)
	if o.loans[limit] == nil {
		o.loans[limit] = map[string]*quotav1.Loan{}
	}
	o.loans[limit][key] = l
}

// acknowledged notes how long an order took until it was in force.
func (o *outbox) acknowledged(limit string, seq uint64, now int64) {
	if s := o.sent[limit]; s.seq != 0 && seq >= s.seq && o.acked[limit] < s.seq {
		observeAck(time.Duration(now - s.at))
	}
	o.acked[limit] = max(o.acked[limit], seq)
}

// take empties it into a message, nil where nothing waits.
func (o *outbox) take(epoch uint64) *quotav1.Grant {
	if len(o.limits) == 0 {
		return nil
	}
	g := &quotav1.Grant{Epoch: epoch}
	for id, l := range o.limits {
		for _, loan := range o.loans[id] {
			l.Loans = append(l.Loans, loan)
		}
		g.Limits = append(g.Limits, l)
	}
	clear(o.limits)
	clear(o.loans)
	return g
}
