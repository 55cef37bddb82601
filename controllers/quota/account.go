// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math"
	"math/big"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter/escrow"
)

// driftMargin is (1 + 2*rho) for rho = 0.001, in thousandths: clocks may differ by that much.
const driftMargin = 1002

// account is one limit and, where pods share it, its ledger.
type account struct {
	limit  *quotav1.Limit
	ledger *escrow.Ledger // nil for scope PerPod: every pod has the whole
	dirty  bool
}

func newAccount(limit *quotav1.Limit, fill uint64, unregistered []string) *account {
	a := &account{limit: limit}
	if limit.Scope != quotav1.Scope_PER_POD {
		a.ledger = escrow.New(quotav1.Whole, fill, unregistered)
	}
	a.update(limit)
	return a
}

// update takes new numbers for the same limit. They change no share: a share is a fraction.
func (a *account) update(limit *quotav1.Limit) {
	a.limit = limit
	if a.ledger != nil {
		a.ledger.SetDelay(refill(limit))
	}
}

// share is what an assignment says for a holder; ok is false when it has none.
func (a *account) share(holder string) (*quotav1.Share, bool) {
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
