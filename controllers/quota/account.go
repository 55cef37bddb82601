// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// driftMargin is (1 + 2*rho) for rho = 0.001, in thousandths: clocks may differ by that much.
const driftMargin = 1002

// account is one limit and, where pods share it, its ledger.
type account struct {
	limit  *quotav1.Limit
	ledger *escrow.Ledger // of equal shares
	// lending is of limits that are lent. Neither is there for scope PerPod: every pod has the whole.
	lending *lending
	// from are the limit's former lives, under another strategy: nothing is granted before they are out of use.
	from  []*account
	dirty bool
}

func newAccount(limit *quotav1.Limit, fill uint64, unregistered []string) *account {
	a := &account{limit: limit}
	if limit.Scope != quotav1.Scope_PER_POD {
		a.ledger = escrow.New(quotav1.Whole, fill, unregistered)
	}
	a.update(limit, 0)
	return a
}

// waits reports whether a former life of the limit may still be in use.
func (a *account) waits() bool {
	a.from = slices.DeleteFunc(a.from, func(f *account) bool { return !f.inUse() })
	return len(a.from) > 0
}

// inUse reports whether a process may still act on the limit.
func (a *account) inUse() bool {
	switch {
	case a.ledger != nil:
		return a.ledger.Used() > 0
	case a.lending != nil:
		return a.lending.fleet.InUse()
	}
	return false
}

// knows reports whether the process may have something of the limit.
func (a *account) knows(holder string) bool {
	switch {
	case a.ledger != nil:
		return a.ledger.Knows(holder)
	case a.lending != nil:
		return a.lending.fleet.Knows(holder)
	}
	return false
}

// unheard reports whether the pod may have something of the limit that it has told this leader nothing of.
func (a *account) unheard(pod string) bool {
	switch {
	case a.ledger != nil:
		return slices.Contains(a.ledger.Silent(), pod)
	case a.lending != nil:
		return slices.Contains(a.lending.fleet.Reserved(), pod)
	}
	return false
}

// update takes new numbers for the same limit. They change no equal share: that is a fraction.
func (a *account) update(limit *quotav1.Limit, now int64) {
	a.limit = limit
	switch {
	case a.ledger != nil:
		a.ledger.SetDelay(refill(limit))
	case a.lending != nil:
		a.lending.fleet.Edit(numbers(limit), now)
	}
}

// next is when capacity that rests may move, if any rests.
func (a *account) next() (int64, bool) {
	switch {
	case a.ledger != nil:
		return a.ledger.Next()
	case a.lending != nil:
		return a.lending.fleet.Next()
	}
	return 0, false
}

// gone frees what a process had.
func (a *account) gone(holder string, now int64) {
	a.dirty = true
	switch {
	case a.ledger != nil:
		a.ledger.Gone(holder, now)
	case a.lending != nil:
		a.lending.fleet.Gone(holder, now)
	}
}

// absent notes that a pod that had to report is proven not to run.
func (a *account) absent(uid string, now int64) {
	a.dirty = true
	switch {
	case a.ledger != nil:
		a.ledger.Register(uid, 0, now)
	case a.lending != nil:
		a.lending.fleet.Absent(uid, now)
	}
}

// share is what an assignment says for a holder; ok is false when it has none.
func (a *account) share(holder string) (*quotav1.Share, bool) {
	if a.lending != nil {
		return nil, false // it is ordered, and not assigned
	}
	if a.ledger == nil {
		return &quotav1.Share{LimitId: a.limit.Id, Units: quotav1.Whole}, true
	}
	units, fill := a.ledger.Share(holder)
	return &quotav1.Share{LimitId: a.limit.Id, Units: units, FillUnits: fill}, units > 0
}

// refill is burst/rate of a limit in nanoseconds, with the margin for clocks: how long an empty bucket takes to be full.
func refill(l *quotav1.Limit) int64 {
	t := new(big.Int).SetUint64(l.Burst)
	t.Mul(t, new(big.Int).SetUint64(l.Rate.PeriodNanoseconds))
	t.Mul(t, big.NewInt(driftMargin))
	t.Div(t, new(big.Int).Mul(new(big.Int).SetUint64(l.Rate.Requests), big.NewInt(1000)))
	if !t.IsInt64() {
		return math.MaxInt64 / 2
	}
	return min(t.Int64(), math.MaxInt64/2)
}

// minted is what a limit's pool has earned in elapsed nanoseconds, as units of its burst: at most all of it.
func minted(l *quotav1.Limit, elapsed int64) uint64 {
	full := refill(l)
	if elapsed >= full {
		return quotav1.Whole
	}
	t := new(big.Int).SetUint64(quotav1.Whole)
	t.Mul(t, big.NewInt(max(elapsed, 0)))
	return t.Div(t, big.NewInt(full)).Uint64()
}

// part is units of an amount, rounded down.
func part(amount, units uint64) uint64 {
	hi, lo := bits.Mul64(amount, min(units, quotav1.Whole))
	q, _ := bits.Div64(hi, lo, quotav1.Whole)
	return q
}
