// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"maps"
	"slices"
)

// Want says what a connected holder asks for.
type Want uint8

const (
	// WantNone asks for nothing: the holder serves no requests. A share it has is called back.
	WantNone Want = iota
	// WantKeep asks to keep what it has, up to the equal share: the holder is draining. It counts, and never grows.
	WantKeep
	// WantFull asks for an equal share.
	WantFull
)

// Grant is a share that the ledger has decided to send to a holder. It replaces the holder's share.
type Grant struct {
	Holder string
	Units  uint64
	// Fill is what the share starts with, in units of the limit's burst; above 0 only for a newborn at the first fill.
	Fill uint64
}

// Ledger splits one whole equally among holders. See the package documentation for the invariant.
type Ledger struct {
	whole   uint64
	delay   int64
	holders map[string]*holder

	// Holders that existed before this ledger and have not said what they hold: together they hold at most reserve.
	unregistered map[string]struct{}
	reserve      uint64

	cooling parcels
	pool    uint64 // of the first fill
}

// holder is what the ledger knows of one process.
type holder struct {
	connected bool
	want      Want
	granted   uint64  // newest share decided
	acked     uint64  // newest share acknowledged
	pending   []offer // decided and not acknowledged, oldest first; seq strictly rises
	fill      uint64  // first fill, repeated until acknowledged
}

type offer struct {
	seq   uint64
	units uint64
}

// believed is the largest share that the process may act on.
func (h *holder) believed() uint64 {
	b := h.acked
	for _, o := range h.pending {
		b = max(b, o.units)
	}
	return b
}

// New returns the ledger of one limit, of which nobody holds anything but the unregistered: holders that existed before
// and may hold, together, all of it. The first holders to be granted a share also get fill units of the burst, once.
func New(whole, fill uint64, unregistered []string) *Ledger {
	l := &Ledger{whole: whole, pool: min(fill, whole), holders: map[string]*holder{}, unregistered: map[string]struct{}{}}
	for _, id := range unregistered {
		l.unregistered[id] = struct{}{}
	}
	if len(l.unregistered) > 0 {
		l.reserve = whole
	}
	return l
}

// SetDelay sets how long freed capacity rests before a share that exists already may grow by it: burst/rate of the limit,
// with the margin for clocks (docs/guarantees.md, 7). It counts for what is freed from now on.
func (l *Ledger) SetDelay(nanoseconds int64) { l.delay = max(nanoseconds, 0) }

// Join takes in a holder, or one that comes back, with the share that it says is in force. The caller vouches that no
// message sent to it earlier can still take effect.
func (l *Ledger) Join(id string, reported uint64, now int64) {
	before := uint64(0)
	h := l.holders[id]
	if h == nil {
		h = &holder{}
		l.holders[id] = h
	} else {
		before = h.believed()
	}
	h.connected, h.granted, h.acked, h.pending = true, reported, reported, nil
	if reported < before {
		l.cooling.add(before-reported, now+l.delay)
	}
}

// Register takes what an unregistered holder reported out of the reserve: 0 when it is proven gone. The reserve is right
// as a bound since the earlier ledger's own sum never exceeded the whole; what is left when the last one has reported was
// held by nobody. An id that is not unregistered changes nothing.
func (l *Ledger) Register(id string, reported uint64, now int64) {
	if _, ok := l.unregistered[id]; !ok {
		return
	}
	l.reserve -= min(l.reserve, reported)
	delete(l.unregistered, id)
	if len(l.unregistered) == 0 {
		l.cooling.add(l.reserve, now+l.delay)
		l.reserve = 0
	}
}

// SetWant changes what a holder asks for.
func (l *Ledger) SetWant(id string, w Want) {
	if h := l.holders[id]; h != nil {
		h.want = w
	}
}

// Disconnect notes that a holder cannot be reached. It keeps its share: silence proves nothing.
func (l *Ledger) Disconnect(id string) {
	if h := l.holders[id]; h != nil {
		h.connected = false
	}
}

// Gone frees what a holder had. Call it only on a final report or on proof that the process has ended.
func (l *Ledger) Gone(id string, now int64) {
	if h := l.holders[id]; h != nil {
		l.cooling.add(h.believed(), now+l.delay)
		delete(l.holders, id)
	}
}

// Ack notes that the holder acts on the share decided in round seq and can no longer act on any older one.
func (l *Ledger) Ack(id string, seq uint64, now int64) {
	h := l.holders[id]
	if h == nil {
		return
	}
	n := 0
	for n < len(h.pending) && h.pending[n].seq <= seq {
		n++
	}
	if n == 0 {
		return
	}
	before := h.believed()
	h.acked = h.pending[n-1].units
	h.pending = slices.Delete(h.pending, 0, n)
	h.fill = 0
	if after := h.believed(); after < before {
		l.cooling.add(before-after, now+l.delay)
	}
}

// Share returns the newest share and first fill decided for a holder: what an assignment to it says.
func (l *Ledger) Share(id string) (units, fill uint64) {
	if h := l.holders[id]; h != nil {
		return h.granted, h.fill
	}
	return 0, 0
}

// Acked returns the share that the holder has acknowledged.
func (l *Ledger) Acked(id string) uint64 {
	if h := l.holders[id]; h != nil {
		return h.acked
	}
	return 0
}

// Silent lists, in order, the holders that hold a share and cannot be reached, and the unregistered.
func (l *Ledger) Silent() []string {
	var ids []string
	for id, h := range l.holders {
		if !h.connected && h.believed() > 0 {
			ids = append(ids, id)
		}
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(ids, maps.Keys(l.unregistered))))
}

// N counts the holders that a share is computed for: connected, and asking to have or to keep one.
func (l *Ledger) N() int {
	n := 0
	for _, h := range l.holders {
		if h.counts() {
			n++
		}
	}
	return n
}

func (h *holder) counts() bool {
	return h.connected && (h.want == WantFull || h.want == WantKeep && h.granted > 0)
}

// Knows reports whether the holder may have a share.
func (l *Ledger) Knows(id string) bool { return l.holders[id] != nil }

// Used is how much holders may be acting on, the unregistered among them.
func (l *Ledger) Used() uint64 { return l.whole - l.idle() }

// Settled reports whether every connected holder has acknowledged its newest share and each that asks has one.
func (l *Ledger) Settled() bool {
	for _, h := range l.holders {
		if h.connected && (len(h.pending) > 0 || h.want == WantFull && h.granted == 0) {
			return false
		}
	}
	return true
}
