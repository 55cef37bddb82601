// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Handover is the last word on this account, for the next leader: meaningful only after Fleet.Stop.
func (m *Mint) Handover() (Handover, bool) {
	if m.f.Leading(m.f.now) {
		return Handover{}, false
	}
	m.sync()
	return Handover{Epoch: m.f.recovery.Epoch, Level: m.pool, Lent: m.lent + m.unheard(), Shared: m.f.shared}, true
}

// resume goes on with what the leader directly before had in the pool when it stopped. It counts once, however many
// processes return it. It is no more than was there, since that leader has granted nothing after it and no other has led;
// and no more than has had room beside everything else ever since, since it could have been lent all the time.
func (m *Mint) resume(h Handover) {
	if h.Epoch == 0 || h.Epoch != m.f.recovery.Previous || m.handover || m.f.recovery.First {
		return
	}
	m.handover = true
	m.bound = h.Lent
	spare := m.headroom - h.Lent*Micro
	if h.Shared {
		spare -= m.f.limit.shares()
	} else {
		m.f.unshared()
	}
	m.pool += max(0, min(h.Level, spare))
}

// unshared notes that no process had a share when this leader began: the quarter set apart for shares, and the rate of
// those who have not registered, are free as long as this leader has granted none.
func (f *Fleet) unshared() {
	if f.ledger.reserve > 0 {
		f.ledger.reserve = 0
		f.recount()
	}
	for _, p := range f.list {
		if p.units > 0 {
			return
		}
	}
	f.shared = false
	f.planned = false
}
