// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Flush calls emit with every order that is due, in the order in which they came to be. Call it after every message
// that was taken in, and when Next has passed.
func (f *Fleet) Flush(now int64, emit func(id string, o Order)) {
	if !f.Leading(now) {
		return
	}
	f.advance(now)
	f.look()
	f.plan()
	for _, p := range f.dirty {
		p.dirty = false
		if f.pods[p.id] != p {
			continue
		}
		p.order.Epoch = f.recovery.Epoch
		p.order.Sent = f.now
		p.order.Heard = p.sent
		p.order.Limit = f.limit
		p.order.Stay = f.stay
		p.order.Stand = f.limit.standing(len(f.list) + f.Unregistered())
		emit(p.id, p.order)
	}
	f.dirty = f.dirty[:0]
}

// soil notes that a process is owed an order.
func (f *Fleet) soil(p *pod) {
	if !p.dirty {
		p.dirty = true
		f.dirty = append(f.dirty, p)
	}
}

// Next returns when capacity that rests will be ready to move, if any rests.
func (f *Fleet) Next() (int64, bool) { return f.ledger.Next() }

// occupy notes whether a process has use for all of its share. Where nearly all have, shares are earned in place, which costs
// no messages; where some have not, theirs are better lent.
func (f *Fleet) occupy(p *pod, busy bool) {
	if p.busy == busy {
		return
	}
	p.busy = busy
	if f.busy--; busy {
		f.busy += 2
	}
	stay := 10*f.busy >= 9*len(f.list) || f.stay && 4*f.busy >= 3*len(f.list)
	if stay != f.stay {
		f.stay = stay
		for _, p := range f.list {
			f.soil(p)
		}
	}
}

// plan moves shares. Where the equal share would be below one token there are none, and the mint has the whole burst;
// so it is where one request may cost more than shares leave to the pool.
func (f *Fleet) plan() {
	if at, ok := f.ledger.Next(); f.planned && (!ok || at > f.now) {
		return
	}
	f.planned = true
	n := uint64(len(f.list) + f.Unregistered())
	useful := n > 0 && uint64(f.limit.shares())/n >= Micro && f.limit.MaxCost*Micro <= f.limit.Burst*Micro-f.limit.shares()
	for _, p := range f.list {
		f.ledger.holders[p.id].want = WantNone
		if useful {
			f.ledger.holders[p.id].want = p.want
		}
	}
	f.shared = f.shared || useful
	if useful && f.crowded() {
		f.planned = false // shares wait until what is lent has come down
		return
	}
	f.seq++
	for _, g := range f.ledger.Plan(f.seq, f.now) {
		p := f.pods[g.Holder]
		p.order.Units = g.Units
		p.order.Seq = f.seq
		f.soil(p)
		p.units = f.ledger.holders[p.id].believed()
		f.setAwake(p)
	}
	f.recount()
	if !useful && f.shared && f.ledger.idle() == Whole {
		f.shared = false
	}
}

// crowded reports whether an account has more lent than it may beside the shares.
func (f *Fleet) crowded() bool {
	for _, m := range f.mints {
		if m.free() < 0 {
			return true
		}
	}
	return false
}

// setAwake decides whether a tenth of the share is earned all the time. It counts as earned from now on, and no longer
// only once an order that ends it is acknowledged.
func (f *Fleet) setAwake(p *pod) {
	awake := f.limit.awakeCap(p.order.Units) > 0
	if !awake && p.order.Awake {
		p.awakeOff = f.seq
	}
	p.order.Awake = awake
}
