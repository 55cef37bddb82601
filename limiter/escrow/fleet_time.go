// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "math"

// advance earns what the mint's own part of the rate has earned up to now. Promises end at their deadlines, whenever
// that is noticed: from there on the pod may be earning its share itself.
func (f *Fleet) advance(now int64) {
	now = min(now, f.deadline)
	for f.now < now {
		if f.next > now {
			f.accrue(now)
			return
		}
		first := int64(math.MaxInt64)
		for _, p := range f.list {
			if p.quiet {
				first = min(first, p.until)
			}
		}
		f.next = first
		if first > now {
			continue
		}
		f.accrue(max(first, f.now))
		for _, p := range f.list {
			if p.quiet && p.until <= first {
				p.quiet = false
			}
		}
		f.recount()
	}
}

func (f *Fleet) accrue(to int64) {
	f.earned += uint64(f.rate.add(f.limit, to-f.now, f.parts))
	f.now = to
}

// recount computes the mint's part of the rate: all that no process and nobody unheard of can be earning; and what the
// shares may hold.
func (f *Fleet) recount() {
	used, held := f.ledger.reserve*1000, f.limit.reservedCap(f.ledger.reserve)
	for _, p := range f.list {
		used = addSat(used, p.units*p.permille())
		held += f.holds(p)
	}
	f.hold(held)
	parts := wholeParts - min(wholeParts, used)
	if parts > f.parts {
		f.rate.faster()
	}
	f.parts = parts
}

// permille of its share that the process may be earning now.
func (p *pod) permille() uint64 {
	switch {
	case !p.quiet:
		return 1000
	case p.order.Awake || p.acked < p.awakeOff:
		return awakePermille
	default:
		return 0
	}
}

// holds is the most that the process may have of its share, in micro-tokens: all that the share can hold, unless it sleeps.
func (f *Fleet) holds(p *pod) int64 {
	most := f.limit.isolatedCap(p.units)
	if p.quiet {
		most = min(most, max(p.kept, f.limit.awakeCap(p.units)))
	}
	return most
}

// hold takes over what the shares may hold. Where that falls every account is settled before: a pool that is settled only
// now must not have room for what a share held meanwhile and has spent.
func (f *Fleet) hold(held int64) {
	if held < f.held {
		f.sync()
	}
	f.held = held
}

// keep takes over what a sleeping share holds, from a promise. A late one says nothing of what came since, so the most
// counts.
func (f *Fleet) keep(p *pod, b Beat) {
	before := f.holds(p)
	if b.Sent > p.sent {
		p.kept = b.Kept
	} else {
		p.kept = max(p.kept, b.Kept)
	}
	f.hold(f.held + f.holds(p) - before)
}

// promise notes that a process sleeps: until the time that it names, of this leader's clock, + D, less the drift of two
// clocks. The process counts D from when it sent the promise, which was later.
func (f *Fleet) promise(p *pod, heard int64) {
	until := min(heard, f.now) + f.sleep - f.sleep/drift
	if until <= f.now || until <= p.until {
		return
	}
	p.until = until
	f.next = min(f.next, until)
	if !p.quiet {
		p.quiet = true
		f.recount()
	}
}

// look notes which processes nothing has been heard of for twice as long as a promise lasts.
func (f *Fleet) look() {
	if f.now-f.looked < f.sleep/4 {
		return
	}
	f.looked = f.now
	for _, p := range f.list {
		if !p.lost && f.now-p.heard > 2*f.sleep {
			p.lost = true
			f.ledger.Disconnect(p.id)
			f.planned = false
		}
	}
}

// hear notes that a process is there.
func (f *Fleet) hear(p *pod) {
	p.heard = f.now
	if p.lost {
		p.lost = false
		f.ledger.reconnect(p.id)
		f.planned = false
	}
}
