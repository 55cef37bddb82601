// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "slices"

// Holder is the process's side of one account: loans, the account's part of the share, and counters that never decrease.
// A request that finds enough waits for nothing. It belongs to the Sleeper that made it.
type Holder struct {
	s     *Sleeper
	born  int64
	purse Purse
	out   Hold // what was put in the purse and is not known to be spent; counted as reserved
	bare  bool // the account's share is kept elsewhere

	share         int64  // micro-tokens earned by the share itself
	seen          uint64 // Sleeper.earned that is in share
	reservedShare int64  // micro-tokens

	granted, spent, returned int64 // tokens of loans, since born
	reserved                 int64 // tokens of loans

	demand demand
	queued int64 // cost of the requests held
	head   int64 // cost of the first of them
	told   told
	called bool // what stands by has been called back, and nothing has been lent since
}

// Hold is what one request has reserved, to be committed or cancelled once.
type Hold struct {
	loan  int64 // tokens
	share int64 // micro-tokens
}

// Account returns the holder of an account that nothing has been taken from: it has what it would have earned if it had
// been there from the start.
func (s *Sleeper) Account(now int64) *Holder {
	s.advance(now)
	first := s.holders[0]
	first.settle()
	s.born = max(s.born+1, now)
	h := &Holder{s: s, born: s.born, share: first.share, seen: first.seen}
	s.holders = append(s.holders, h)
	return h
}

// Loans returns the holder of an account that lives on loans alone: its part of the share is kept elsewhere, by the numbers
// that Share tells.
func (s *Sleeper) Loans(now int64) *Holder {
	h := s.Account(now)
	h.bare, h.share = true, 0
	return h
}

// Purse is where the tokens at hand lie, for all goroutines.
func (h *Holder) Purse() *Purse { return &h.purse }

// settle moves what the share has earned into the account, as far as it has room. While the share sleeps, what it has is
// kept: it counts within the quarter of the burst that is set apart for shares.
func (h *Holder) settle() {
	if h.bare {
		return
	}
	most := max(h.s.room()-h.reservedShare, 0)
	if h.share < most {
		h.share += int64(min(h.s.earned-h.seen, uint64(most-h.share)))
	}
	h.seen = h.s.earned
	if h.out.share > 0 && h.reservedShare > h.s.whole {
		h.collect()
		h.out.shrink(h, h.reservedShare-h.s.whole)
	}
	h.share = min(h.share, max(h.s.whole-h.reservedShare, 0))
}

// loan is what is borrowed and free to be taken, in tokens.
func (h *Holder) loan() int64 { return h.granted - h.spent - h.returned - h.reserved }

// Available returns how many whole tokens could be taken now, in the purse and beside it.
func (h *Holder) Available(now int64) int64 {
	h.s.advance(now)
	h.settle()
	return h.atHand()
}

// Outstanding is what is borrowed and neither spent nor returned, in tokens.
func (h *Holder) Outstanding() int64 { return h.granted - h.spent - h.returned }

// atHand is Available without what was earned since.
func (h *Holder) atHand() int64 {
	return max(0, h.loan()) + h.share/Micro + h.purse.Left()
}

// Take takes n tokens for a request that is forwarded at once: all or nothing.
func (h *Holder) Take(n, now int64) bool {
	hold, ok := h.Reserve(n, now)
	if ok {
		h.Commit(hold)
	}
	return ok
}

// Reserve sets n tokens apart for a request that has others to ask as well: all or nothing. What is reserved is not
// reported as spent.
func (h *Holder) Reserve(n, now int64) (Hold, bool) {
	h.s.advance(now)
	h.settle()
	own := min(h.share/Micro, n)
	if n < 0 || n-own > h.loan() {
		return Hold{}, false
	}
	hold := Hold{loan: n - own, share: own * Micro}
	h.share -= hold.share
	h.reservedShare += hold.share
	h.reserved += hold.loan
	return hold, true
}

// Commit spends what was reserved: this is the instant that the law counts. It cannot be undone.
func (h *Holder) Commit(r Hold) {
	h.reservedShare -= r.share
	h.reserved -= r.loan
	h.spent += r.loan
}

// Cancel gives back what was reserved and not committed.
func (h *Holder) Cancel(r Hold) {
	h.settle()
	h.reservedShare -= r.share
	h.reserved -= r.loan
	h.share = min(h.share+r.share, max(h.s.whole-h.reservedShare, 0))
}

// Loan takes in what the leader has lent. An older leader's word is refused: what this process holds has been reported
// to the new one, without it.
func (h *Holder) Loan(l Loan) {
	if l.Epoch != h.s.epoch || l.Born != h.born {
		return
	}
	if l.Granted > h.granted {
		h.granted, h.called = l.Granted, false
	}
	h.called = h.called || l.Recall
}

// standing is what the account may keep at hand without demand, in tokens.
func (h *Holder) standing() int64 {
	if h.bare || h.s.draining || h.s.staying {
		return 0
	}
	return h.s.stand
}

// Forgettable reports whether the account is as if it had never been there. Then, and only then, the owner may Forget it.
func (h *Holder) Forgettable(now int64) bool {
	h.s.advance(now)
	h.settle()
	h.collect()
	first := h.s.holders[0]
	first.settle()
	return h.granted == h.spent+h.returned && h.told.spent == h.spent && h.told.returned == h.returned &&
		h.reserved == 0 && h.reservedShare == 0 && h.queued == 0 && (h.bare || h.share >= first.share)
}

// Forget takes the account out of the process.
func (h *Holder) Forget() {
	for i, x := range h.s.holders {
		if x == h && i > 0 {
			h.s.holders = slices.Delete(h.s.holders, i, i+1)
			return
		}
	}
}
