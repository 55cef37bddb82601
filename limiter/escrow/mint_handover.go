// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Remainder is what a leader that stopped in order leaves of one account: after it, that leader grants nothing, so the
// leader directly after it may go on with what was in the pool. It must be taken in once at most.
//
// Only a last word can be used so. The level that came with an ordinary loan is an upper bound of the pool only together
// with every later loan, and the borrower of a later one may be dead, proven gone and forgotten.
type Remainder struct {
	// Level of the pool in micro-tokens.
	Level int64
	// Lent is an upper bound of what all processes hold in loans, in tokens.
	Lent int64
}

// Below returns what holds for two accounts at once.
func (r Remainder) Below(other Remainder) Remainder {
	return Remainder{Level: min(r.Level, other.Level), Lent: max(r.Lent, other.Lent)}
}

// Rest is what is left of every account that nobody has borrowed from; meaningful only after Stop.
func (f *Fleet) Rest() (Remainder, bool) { return f.mints[0].Remainder() }

// Shared reports whether a process may have a share of the limit.
func (f *Fleet) Shared() bool { return f.shared }

// Ceiling returns the largest burst, and the largest Limit.Outstanding, that a process may still believe in.
func (f *Fleet) Ceiling() (burst, outstanding int64) {
	if f.Settled() {
		return f.limit.Burst, f.limit.Outstanding()
	}
	return f.recovery.Ceiling, f.recovery.CeilingOutstanding
}

// Remainder is the last word on this account; meaningful only after Fleet.Stop.
func (m *Mint) Remainder() (Remainder, bool) {
	if m.f.Leading(m.f.now) {
		return Remainder{}, false
	}
	m.sync()
	return Remainder{Level: m.pool, Lent: m.lent + m.unheard()}, true
}

// Restore returns the mint of an account that the leader directly before has left a word on. Call it before any process
// has said Hello.
func (f *Fleet) Restore(r Remainder, now int64) *Mint {
	m := f.Account(now)
	m.pool = 0
	m.resume(r)
	return m
}

// resume goes on with what is left.
func (m *Mint) resume(r Remainder) {
	m.resumed, m.bound = true, r.Lent
	m.pool = max(0, min(r.Level, m.room()))
}

// unshared notes that no process had a share when this leader began: the quarter set apart for shares, and the rate of
// those who have not registered, are free as long as this leader has granted none.
func (f *Fleet) unshared() {
	f.ledger.reserve = 0
	f.shared = false
}
