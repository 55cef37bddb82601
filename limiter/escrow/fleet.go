// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "math"

// Recovery is what a new leader knows of the time before it.
type Recovery struct {
	// Epoch of this leader, above any before it.
	Epoch uint64
	// First says that the limit has never been served: the pool starts full. It may be true once in a limit's life.
	First bool
	// Existing are the processes that may run and have to say what they hold.
	Existing []string
	// Unshared says that no existing process has a share, by a durable note that is taken away before the first is handed
	// out. It is implied where a quarter of Ceiling is below one token.
	Unshared bool
	// Rest is what the leader directly before left of every account that is not restored by itself; nil if it did not stop
	// in order, or is not the one directly before.
	Rest *Remainder
	// Ceiling is the largest burst that an existing process may have been told, in tokens, and CeilingOutstanding the
	// largest Limit.Outstanding; 0 means those of the limit.
	Ceiling, CeilingOutstanding int64
}

// Fleet is the leader's side of one limit: which processes there are, what share each has, which of the shares sleep, and
// what is therefore left for the mint to earn. A Mint for each account lends what is earned here.
//
// At every instant
//
//	rate of the mint + sum of the shares not proven asleep = R
//	pool + lent + what the shares may hold <= B        and        lent + what they could ever hold <= B
//
// so that all pods and the mint together are one token bucket. A share that sleeps holds no more than was reported, so an
// idle limit has nearly all of its burst in the pool; one that is awake counts as full. Times are nanoseconds of the leader's monotonic clock. A
// Fleet and its mints are not safe for concurrent use; the owner serialises the calls.
type Fleet struct {
	recovery Recovery
	limit    Limit
	sleep    int64 // D
	deadline int64 // of the lease: nothing is earned or granted from then on
	stopped  bool

	ledger  *Ledger
	pods    map[string]*pod
	list    []*pod
	dirty   []*pod // those that are owed an order
	seq     uint64
	planned bool // nothing has changed since the last plan
	edit    uint64
	shared  bool  // some process may have a share
	held    int64 // the most that the shares of one account hold together, in micro-tokens

	busy   int   // how many pods are
	stay   bool  // shares are earned in place
	looked int64 // when those that are not heard of were last looked for

	now    int64
	earned uint64 // micro-tokens since the start; wraps around, and differences hold
	rate   accrual
	parts  uint64 // of wholeParts: the mint's own rate
	next   int64  // no promise ends before

	mints []*Mint // the first is the account that nobody has borrowed from
}

// pod is what the leader knows of one process.
type pod struct {
	id    string
	units uint64 // the largest share it may believe in
	until int64  // it sleeps until then; what is past is not relied on
	quiet bool   // it sleeps, by the account of Fleet.parts
	kept  int64  // what its share may hold while it sleeps, in micro-tokens
	lost  bool   // nothing has been heard of it for long, so it is not counted on
	heard int64  // when the newest beat came
	busy  bool   // it has use for all of its share
	want  Want

	forgotten int64 // newest Claim.Sent of an account that was forgotten

	sent     int64 // newest Beat.Sent
	order    Order // newest decided
	awakeOff uint64
	acked    uint64
	dirty    bool
}

// NewFleet returns the leader's side of a limit. sleep is D, for how long a promise to sleep holds (1 s by default).
// Nothing is earned before Lease is called.
func NewFleet(l Limit, sleep int64, r Recovery, now int64) *Fleet {
	r.Ceiling = max(r.Ceiling, l.Burst)
	r.CeilingOutstanding = max(r.CeilingOutstanding, l.Outstanding())
	f := &Fleet{
		recovery: r, limit: l, sleep: sleep, deadline: now, now: now, next: math.MaxInt64, seq: 1, edit: 1,
		ledger: New(Whole, 0, r.Existing), pods: map[string]*pod{}, shared: len(r.Existing) > 0,
	}
	f.ledger.SetDelay(l.growthDelay())
	if r.Unshared || r.Ceiling < quarter {
		f.unshared()
	}
	f.recount()
	first := newMint(f)
	f.mints = append(f.mints, first)
	switch {
	case r.First && len(r.Existing) == 0:
		first.pool = first.room()
	case r.Rest != nil:
		first.resume(*r.Rest)
	}
	return f
}

// Lease lets the leader go on until a time of its clock. The caller makes sure that nobody else can lead before
// (sent renewal + duration, with the margin for clocks). Earlier times than before are refused: they shorten nothing.
func (f *Fleet) Lease(until, now int64) {
	f.advance(now)
	if !f.stopped {
		f.deadline = max(f.deadline, until)
	}
}

// Stop ends this leader's part for good, whatever lease is renewed: nothing is granted from now on, so Rest and Remainder may be asked for.
func (f *Fleet) Stop(now int64) {
	f.advance(now)
	f.stopped, f.deadline = true, math.MinInt64
}

// Leading reports whether this leader may still grant.
func (f *Fleet) Leading(now int64) bool { return now < f.deadline }

// Unregistered counts the processes that existed before this leader and have not said what they hold.
func (f *Fleet) Unregistered() int { return len(f.ledger.unregistered) }

// Reserved lists the processes that hold a share and cannot be reached, and those that have not registered.
func (f *Fleet) Reserved() []string { return f.ledger.Silent() }

// Limit returns the numbers in force at the leader.
func (f *Fleet) Limit() Limit { return f.limit }

// Edit changes the numbers. A larger burst adds room and no tokens; a smaller one takes what is above it for good.
func (f *Fleet) Edit(l Limit, now int64) {
	if l == f.limit {
		return
	}
	f.advance(now)
	f.sync()
	f.recovery.Ceiling = max(f.recovery.Ceiling, l.Burst)
	f.recovery.CeilingOutstanding = max(f.recovery.CeilingOutstanding, l.Outstanding())
	f.limit = l
	f.ledger.SetDelay(l.growthDelay())
	f.rate.restart()
	f.sync()
	f.seq++
	f.edit = f.seq
	for _, p := range f.list {
		p.order.Seq = f.seq
		f.setAwake(p)
		f.soil(p)
	}
	f.recount()
	f.planned = false
}

// Settled reports whether the numbers of before the last Edit are out of use everywhere.
func (f *Fleet) Settled() bool {
	for _, p := range f.list {
		if p.acked < f.edit {
			return false
		}
	}
	return !f.crowded() && f.Unregistered() == 0
}

// Account returns the mint of an account that has not borrowed yet. It has what it would have if it had been there
// from the start.
func (f *Fleet) Account(now int64) *Mint {
	f.advance(now)
	f.mints[0].sync()
	m := newMint(f)
	m.pool, m.resumed, m.bound = f.mints[0].pool, f.mints[0].resumed, f.mints[0].bound
	f.mints = append(f.mints, m)
	return m
}

// sync settles every account at the numbers of this moment, before they change or because they have.
func (f *Fleet) sync() {
	for _, m := range f.mints {
		m.sync()
	}
}
