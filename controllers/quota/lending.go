// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// lending is the leader's side of a limit whose tokens are lent to the pods where the demand is: what the processes have of
// it, and a mint for each key that one of them has run short of. Everything is guarded by the home's lock.
type lending struct {
	id    string
	fleet *escrow.Fleet
	mints map[string]*escrow.Mint // by key; that of a limit without keys is ""
}

const (
	// maxMints bounds the keys of one limit that are lent at a time; the others live on their share.
	maxMints = 10_000
	// keyBytes is how long what stands for a key is.
	keyBytes = 16
)

func newLending(l *quotav1.Limit, r escrow.Recovery, accounts map[string]escrow.Remainder, now int64) *lending {
	b := &lending{id: l.Id, fleet: escrow.NewFleet(numbers(l), escrow.Sleep, r, now), mints: map[string]*escrow.Mint{}}
	for key, left := range accounts {
		b.mints[key] = b.fleet.Restore(left, now)
	}
	if len(l.Key) == 0 && b.mints[""] == nil {
		b.mints[""] = b.fleet.Account(now)
	}
	return b
}

// numbers are those of a limit that the law is stated in.
func numbers(l *quotav1.Limit) escrow.Limit {
	return escrow.Limit{
		Requests: l.Rate.Requests, Period: l.Rate.PeriodNanoseconds, Burst: int64(l.Burst), Keyed: len(l.Key) > 0, MaxCost: maxCost(l),
	}
}

// maxCost is the most that one request can cost: what is beyond the burst is never admitted.
func maxCost(l *quotav1.Limit) int64 {
	c := l.GetCost()
	if c == nil {
		return 1
	}
	most := l.Burst
	switch source := c.GetSource().(type) {
	case *quotav1.Cost_Tokens:
		most = source.Tokens
	case *quotav1.Cost_Response:
		most = source.Response.GetEstimate()
	}
	if c.GetMax() > 0 {
		most = min(most, c.GetMax())
	}
	return int64(min(max(most, 1), l.Burst))
}

// mint returns the account of a key, beginning it if need be; nil where there is no room for another.
func (b *lending) mint(key []byte, now int64) *escrow.Mint {
	if m := b.mints[string(key)]; m != nil {
		return m
	}
	if !b.fleet.Limit().Keyed || len(key) != keyBytes || len(b.mints) >= maxMints {
		return nil
	}
	m := b.fleet.Account(now)
	b.mints[string(key)] = m
	return m
}

// forget drops the accounts that are as if they had never been there.
func (b *lending) forget(now int64) {
	if !b.fleet.Limit().Keyed {
		return
	}
	for key, m := range b.mints {
		if m.Forgettable(now) {
			m.Forget()
			delete(b.mints, key)
		}
	}
}

// lent is what is lent of all accounts together, and what can be lent, in tokens.
func (b *lending) lent(now int64) (lent, pool int64) {
	for _, m := range b.mints {
		lent += m.Lent()
		pool += m.Pool(now) / escrow.Micro
	}
	return lent, pool
}

// beatOf reads a beat. A sidecar of a release that does not say what its share holds may have all that it can hold.
func beatOf(epoch uint64, b *quotav1.Beat) escrow.Beat {
	kept := int64(math.MaxInt64)
	if b.Kept != nil {
		kept = max(b.GetKept(), 0)
	}
	return escrow.Beat{
		Epoch: epoch, Sent: b.GetSent(), Heard: b.GetHeard(), Promise: b.GetPromise(), Acked: b.GetAcked(),
		Units: b.GetUnits(), Awake: b.GetAwake(), Draining: b.GetDraining(), Busy: b.GetBusy(), Kept: kept,
	}
}

// claimOf reads a claim. Numbers beyond any limit's are cut to what makes no sense together, and so is not heard.
func claimOf(epoch uint64, c *quotav1.Claim) escrow.Claim {
	const most = math.MaxInt64 / 4
	cut := func(n int64) int64 { return max(min(n, most), -1) }
	return escrow.Claim{
		Epoch: epoch, Sent: cut(c.GetSent()), Born: cut(c.GetBorn()), Granted: cut(c.GetGranted()), Spent: cut(c.GetSpent()),
		Returned: cut(c.GetReturned()), Want: cut(c.GetWant()), Least: cut(c.GetLeast()), Idle: c.GetIdle(),
	}
}

func orderOf(o escrow.Order) *quotav1.Order {
	return &quotav1.Order{
		Sent: o.Sent, Heard: o.Heard, Seq: o.Seq, Units: o.Units, Awake: o.Awake, Stay: o.Stay, Stand: o.Stand,
		Rate:  &quotav1.Rate{Requests: o.Limit.Requests, PeriodNanoseconds: o.Limit.Period},
		Burst: uint64(o.Limit.Burst), MaxCost: uint64(o.Limit.MaxCost),
	}
}

// Accounts counts the accounts at the mint, of all limits that are lent.
func (h *Home) Accounts() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.policies {
		for _, a := range p.accounts {
			if a.lending != nil {
				n += len(a.lending.mints)
			}
		}
	}
	return n
}
