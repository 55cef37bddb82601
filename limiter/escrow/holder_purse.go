// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Stock brings the purse up to date: what is missing from it has been spent, and what is at hand beside it goes into it.
// It returns how much was spent since the last time. The requests that are held go first: call it when none is, or when
// those have taken what they can.
func (h *Holder) Stock(now int64) (spent int64) {
	spent = h.Collect(now)
	if more, ok := h.Reserve(max(0, h.loan())+h.share/Micro, now); ok {
		h.out.loan += more.loan
		h.out.share += more.share
		h.purse.put(more.loan + more.share/Micro)
	}
	return spent
}

// Collect is the first half of Stock: it counts what was spent from the purse.
func (h *Holder) Collect(now int64) (spent int64) {
	h.s.advance(now)
	h.settle()
	spent = h.collect()
	if spent > 0 {
		h.demand.add(spent, now)
	}
	return spent
}

// Empty takes back what lies in the purse, so that those who wait are served before those who come.
func (h *Holder) Empty(now int64) {
	h.Collect(now)
	h.reclaim(h.purse.Left())
}

// Watch says below which number of tokens the purse is Low.
func (h *Holder) Watch(low int64) { h.purse.low.Store(low) }

// Refund gives back n tokens of what was spent and turned out to have cost less: as far as it has not been reported as spent.
func (h *Holder) Refund(n, now int64) {
	h.Collect(now)
	h.spent -= min(n, h.spent-h.told.spent)
}

// collect counts as spent what is missing from the purse: of the share first, as Reserve takes it. Settle before: when it was
// spent is not known, and while it was there a full share earned nothing.
func (h *Holder) collect() int64 {
	missing := h.out.loan + h.out.share/Micro - h.purse.held()
	if missing <= 0 {
		return 0
	}
	own := min(h.out.share/Micro, missing)
	h.out.share -= own * Micro
	h.out.loan -= missing - own
	h.Commit(Hold{loan: missing - own, share: own * Micro})
	return missing
}

// reclaim takes up to n tokens out of the purse, of loans first. Call collect before.
func (h *Holder) reclaim(n int64) {
	got := h.purse.withdraw(n)
	loans := min(got, h.out.loan)
	back := Hold{loan: loans, share: (got - loans) * Micro}
	h.out.loan -= back.loan
	h.out.share -= back.share
	h.Cancel(back)
}

// giveBack returns the loans beyond what keep whole tokens at hand leave, those in the purse among them.
func (h *Holder) giveBack(keep int64) {
	over := h.loan() + h.out.loan - keep
	if over <= 0 {
		return
	}
	if beyond := over - max(0, h.loan()); beyond > 0 && h.out.loan > 0 {
		h.reclaim(min(beyond, h.out.loan))
	}
	h.returned += min(over, max(0, h.loan()))
}

// shrink takes share tokens out of the purse for good, which a smaller share has no room for. Call collect before.
func (r *Hold) shrink(h *Holder, over int64) {
	k := h.purse.withdraw(min((over+Micro-1)/Micro, r.share/Micro))
	r.share -= k * Micro
	h.reservedShare -= k * Micro
}
