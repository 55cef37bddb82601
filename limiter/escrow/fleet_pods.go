// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Hello takes in a process that has adopted this epoch and says what it holds: its share in the Beat, and its loans in
// the claims that came with it, which the caller passes on to the mints before anything else. Accounts that are not
// among the claims have nothing lent to it. A repeated Hello is a Beat. origin is what Recovery.Existing calls it: another
// process of the same pod proves that the one before has ended.
func (f *Fleet) Hello(id, origin string, b Beat, now int64) {
	if b.Epoch != f.recovery.Epoch || !f.Leading(now) {
		return
	}
	f.advance(now)
	b.Units = min(b.Units, Whole)
	if f.pods[id] == nil {
		f.sync()
		p := &pod{id: id, want: WantFull, heard: f.now}
		p.order = Order{Seq: f.seq, Units: b.Units, Awake: b.Awake}
		f.pods[id] = p
		f.list = append(f.list, p)
		f.soil(p)
		f.ledger.Join(id, b.Units, f.now)
		f.ledger.Register(origin, b.Units, f.now)
		f.shared = f.shared || b.Units > 0
		p.units = b.Units
		f.recount()
		f.sync()
		f.planned = false
	}
	f.Beat(id, b, now)
}

// Beat takes in what a process says about its share. It reports whether the process is known; one that is not has to
// adopt the epoch and send a Hello.
func (f *Fleet) Beat(id string, b Beat, now int64) bool {
	p := f.pods[id]
	if p == nil || b.Epoch != f.recovery.Epoch {
		return false
	}
	if !f.Leading(now) {
		return true
	}
	f.advance(now)
	f.hear(p)
	if b.Promise {
		f.keep(p, b)
		f.promise(p, b.Heard)
	}
	if acked := min(b.Acked, p.order.Seq); acked > p.acked {
		p.acked = acked
		f.ledger.Ack(id, acked, f.now)
		f.believe(p)
	}
	if b.Sent > p.sent {
		p.sent = b.Sent
		f.soil(p)
		f.occupy(p, b.Busy)
		want := WantFull
		if b.Draining {
			want = WantKeep
		}
		if p.want != want {
			p.want = want
			f.planned = false
		}
	}
	return true
}

// believe takes over from the ledger what the process may believe in.
func (f *Fleet) believe(p *pod) {
	p.units = f.ledger.holders[p.id].believed()
	f.recount()
	f.planned = false
}

// Gone takes out a process on its final report or on proof that it has ended. What it had borrowed and not reported is
// spent.
func (f *Fleet) Gone(id string, now int64) {
	f.advance(now)
	f.sync()
	if p := f.pods[id]; p != nil {
		for _, m := range f.mints {
			m.gone(p)
		}
		f.ledger.Gone(id, f.now)
		f.occupy(p, false)
		delete(f.pods, id)
		for i, x := range f.list {
			if x == p {
				last := len(f.list) - 1
				f.list[i] = f.list[last]
				f.list = f.list[:last]
				break
			}
		}
	}
	f.recount()
	f.sync()
	f.planned = false
}

// Absent notes that one of Recovery.Existing is proven not to run.
func (f *Fleet) Absent(origin string, now int64) {
	f.advance(now)
	f.sync()
	f.ledger.Register(origin, 0, f.now)
	f.recount()
	f.sync()
	f.planned = false
}

// Knows reports whether a process has said Hello and is not gone.
func (f *Fleet) Knows(id string) bool { return f.pods[id] != nil }

// InUse reports whether a process may act on the limit.
func (f *Fleet) InUse() bool { return len(f.list) > 0 || f.Unregistered() > 0 }

// Share returns the share that was decided last for a process, and whether the numbers of the last Edit are in force there.
func (f *Fleet) Share(id string) (units uint64, current bool) {
	p := f.pods[id]
	if p == nil {
		return 0, false
	}
	return p.order.Units, p.acked >= f.edit
}

// Holds reports whether a process may have something of the limit: a share, or loans.
func (f *Fleet) Holds(id string) bool {
	p := f.pods[id]
	if p == nil {
		return false
	}
	for _, m := range f.mints {
		if b := m.borrowers[p]; b != nil && b.outstanding() > 0 {
			return true
		}
	}
	return p.units > 0
}

// N counts the processes that share the limit.
func (f *Fleet) N() int { return len(f.list) }

// Raise goes on under a higher epoch, with everything as it is: the processes adopt it and say Hello again, and refuse from
// then on what was sent under the lower one.
func (f *Fleet) Raise(epoch uint64) { f.recovery.Epoch = max(f.recovery.Epoch, epoch) }

// reconnect undoes Disconnect for a process that kept what it had: its pending shares stay pending.
func (l *Ledger) reconnect(id string) {
	if h := l.holders[id]; h != nil {
		h.connected = true
	}
}
