// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Handover is the last word on this account, for the next leader: meaningful only after Fleet.Stop.
func (m *Mint) Handover() (Handover, bool) {
	if m.f.Leading(m.f.now) {
		return Handover{}, false
	}
	m.sync()
	return Handover{Epoch: m.f.recovery.Epoch, Level: m.pool, Lent: m.lent + m.unheard()}, true
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
	m.pool += max(0, min(h.Level, m.headroom-h.Lent*Micro))
}
