// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "time"

const (
	// least times between claims of one account, by reason.
	moreGap   = 2 * int64(time.Millisecond)
	returnGap = 10 * int64(time.Millisecond)
	spentGap  = 25 * int64(time.Millisecond)
	repeatGap = 30 * int64(time.Millisecond)
)

// told is what the newest claim said.
type told struct {
	at              int64
	sent            int64
	spent, returned int64
	want            int64
	idle            bool
	repeat          int64 // until it is repeated, in nanoseconds from at; 0 = never
}

// Arrive notes that a request of cost n has come, admitted or not.
func (h *Holder) Arrive(n, now int64) { h.demand.add(n, now) }

// Queue notes the requests that are held: what they cost together, and what the first of them costs. They hold no tokens.
func (h *Holder) Queue(cost, first int64) { h.queued, h.head = cost, first }

// Claim returns what is to be said to the leader now, if anything is. Call it after every change, and every few
// milliseconds while the account is in use: it decides itself how often it speaks.
func (h *Holder) Claim(now int64) (Claim, bool) {
	if h.s.epoch == 0 {
		return Claim{}, false
	}
	h.s.advance(now)
	h.settle()
	h.demand.fade(now)
	over := h.demand.over(now)
	target := h.queued
	if !over {
		target = min(h.demand.ahead()+h.queued, h.s.limit.Outstanding())
	}
	idle, standing := target == 0, h.standing()
	aim := max(target, standing)
	if h.called && !idle {
		aim = target
	}
	h.collect()
	want := h.granted + max(0, aim-h.atHand())
	since := now - h.told.at

	if h.queued == 0 && (since >= returnGap || (over || h.called) && since >= moreGap) {
		keep := target + target/2 + 1
		if over {
			keep = 0
		}
		if !h.called {
			keep = max(keep, standing)
		}
		h.giveBack(keep)
	}
	// The first held request is not covered, nor by what has been asked for.
	short := h.queued > 0 && h.head > h.atHand() && h.told.want <= h.granted
	step := int64(1)
	if h.told.want > h.granted {
		step = 2 // the leader knows, and may have none
	}
	more := want-max(h.told.want, h.granted) >= max(step, aim/2) && since >= moreGap
	less := h.told.want > h.granted && want == h.granted && (since >= spentGap || over && since >= moreGap)
	spent := h.spent > h.told.spent && since >= spentGap
	turned := h.told.idle && !idle && want > h.granted || !h.told.idle && idle && h.Outstanding() > 0 && since >= moreGap
	seldom := h.s.sleep / 3
	if h.s.staying && h.s.isolated {
		seldom = h.s.sleep // with the beats
		if h.told.want > h.granted && !over {
			more, less = false, false // the leader knows, and has next to none to lend: it hears the rest with the next beat
		}
		spent = spent && (since >= h.s.sleep/3 || 2*(h.spent-h.told.spent) >= h.s.limit.Outstanding())
	}
	switch {
	case short || more || less || spent || turned || h.returned > h.told.returned:
		h.told.repeat = repeatGap
	case h.told.repeat > 0 && (since >= h.told.repeat || h.s.beat == now):
		h.told.repeat = min(2*h.told.repeat, seldom)
		if h.told.repeat == seldom && want == h.granted {
			h.told.repeat = 0
		}
	default:
		return Claim{}, false
	}
	h.told.idle = idle
	return h.claim(want, now), true
}

// Next returns when to call Claim, and to look after the account, if nothing else happens: soon while it is in use or has
// something to say, then when what was said is to be repeated, and never where there is nothing to it.
func (h *Holder) Next(now int64) (int64, bool) {
	switch {
	case h.queued > 0 || !h.demand.over(now) || h.spent > h.told.spent || h.Outstanding() > h.standing() ||
		h.called && h.Outstanding() > 0:
		return now + tick, true
	case h.told.repeat > 0:
		return h.told.at + h.told.repeat, true
	}
	return 0, false
}

// Registration returns what the account holds, for a Hello, due or not.
func (h *Holder) Registration(now int64) Claim {
	h.told.repeat = repeatGap
	return h.claim(max(h.told.want, h.granted), now)
}

// Final returns everything that is borrowed and not reserved: the last claim of a process that admits nothing any more.
func (h *Holder) Final(now int64) Claim {
	h.Collect(now)
	h.reclaim(h.purse.Left())
	h.returned += h.loan()
	h.queued, h.head, h.told.idle = 0, 0, false
	return h.claim(h.granted, now)
}

func (h *Holder) claim(want, now int64) Claim {
	h.told.at = now
	h.told.sent = max(now, h.told.sent+1)
	h.told.spent, h.told.returned, h.told.want = h.spent, h.returned, want
	return Claim{
		Epoch: h.s.epoch, Born: h.born, Sent: h.told.sent,
		Granted: h.granted, Spent: h.spent, Returned: h.returned,
		Want: want, Least: max(1, min(h.head-h.atHand(), h.s.limit.Outstanding())), Idle: h.told.idle,
	}
}
