// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"maps"
	"math/bits"
	"slices"
)

// growthGrain is the smallest step, as a part of the target, by which a share grows when it cannot grow whole: finer
// steps would only cost messages.
const growthGrain = 64

// Plan decides, at time now, which shares change, and returns them in the order of the holders' names. The caller sends
// them under the number seq, which rises from call to call, and reports each acknowledgement by Ack with that number.
func (l *Ledger) Plan(seq uint64, now int64) []Grant {
	ids := slices.Sorted(maps.Keys(l.holders))
	target := l.target()
	var grants []Grant
	grant := func(id string, units uint64) {
		h := l.holders[id]
		h.granted = units
		h.pending = append(h.pending, offer{seq: seq, units: units})
		grants = append(grants, Grant{Holder: id, Units: units, Fill: h.fill})
	}

	for _, id := range ids {
		h := l.holders[id]
		keep := target
		if !h.counts() {
			keep = 0
		}
		if h.connected && h.granted > keep {
			grant(id, keep)
		}
	}

	born := false
	for _, id := range ids {
		h := l.holders[id]
		if !h.connected || h.want != WantFull || h.granted > 0 || target == 0 || l.idle() < target {
			continue
		}
		l.cooling.take(target)
		h.fill = min(l.pool, target)
		l.pool -= h.fill
		grant(id, target)
		born = true
	}
	if born {
		l.pool = 0 // the first shares have been handed out; what rounding left is not kept
	}

	l.grow(ids, target, now, grant)
	slices.SortFunc(grants, func(a, b Grant) int {
		if a.Holder < b.Holder {
			return -1
		}
		return 1
	})
	return grants
}

// grow raises existing shares towards the target out of what has finished cooling, each in proportion to what it lacks.
func (l *Ledger) grow(ids []string, target uint64, now int64, grant func(string, uint64)) {
	l.cooling.expire(now)
	free := l.idle() - min(l.idle(), l.cooling.total())
	var lack uint64
	for _, id := range ids {
		if h := l.holders[id]; h.grows(target) {
			lack += target - max(h.granted, h.believed())
		}
	}
	if lack == 0 || free == 0 {
		return
	}
	for _, id := range ids {
		h := l.holders[id]
		if !h.grows(target) {
			continue
		}
		base := max(h.granted, h.believed())
		step := target - base
		if free < lack {
			step = mulDiv(step, free, lack)
			if step < target/growthGrain {
				continue
			}
		}
		grant(id, base+step)
	}
}

// grows reports whether the holder's share exists and is below the target even with all that it may believe.
func (h *holder) grows(target uint64) bool {
	return h.connected && h.want == WantFull && h.granted > 0 && h.granted < target && h.believed() < target
}

// target is the equal share: what silent holders do not hold, over the number that counts.
func (l *Ledger) target() uint64 {
	n := uint64(l.N())
	if n == 0 {
		return 0
	}
	silent := l.reserve
	for _, h := range l.holders {
		if !h.connected {
			silent = addSat(silent, h.believed())
		}
	}
	return (l.whole - min(l.whole, silent)) / n
}

// idle is what nobody can be using: free and cooling together.
func (l *Ledger) idle() uint64 {
	used := l.reserve
	for _, h := range l.holders {
		used = addSat(used, h.believed())
	}
	return l.whole - min(l.whole, used)
}

// Next returns when something that cools now will be ready: the time of the next Plan if nothing else happens.
func (l *Ledger) Next() (int64, bool) { return l.cooling.next() }

func addSat(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return s
}

// mulDiv returns a*b/c for b <= c.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}
