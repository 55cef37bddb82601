// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/headgate/headgate/limiter/escrow"
)

// Handover is what a leader that stops in order leaves to the next one: what is in its pools. It is taken in once at most,
// since the epoch that it goes with is raised by the same write that takes it away (docs/decisions/0006).
type Handover struct {
	Limits map[string]LimitHandover `json:"limits"` // by the digest of its id
}

// LimitHandover is what is left of one limit. Accounts that are not listed have the rest.
type LimitHandover struct {
	Rest     escrow.Remainder            `json:"rest"`
	Accounts map[string]escrow.Remainder `json:"accounts,omitempty"` // by key
	// Shared says that a process may have a share.
	Shared bool `json:"shared,omitempty"`
	// Ceiling and Outstanding are the largest burst, and the largest loan, that a process may still believe in.
	Ceiling     int64 `json:"ceiling"`
	Outstanding int64 `json:"outstanding"`
}

const (
	// maxHandover bounds the accounts that are listed; beyond it those with the most left are folded into the rest.
	maxHandover = 2048
	// maxHandoverBytes bounds what is written, and read.
	maxHandoverBytes = 192 << 10
)

// Stop ends this home's lead for good and returns its last word.
func (h *Home) Stop() Handover {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := Handover{Limits: map[string]LimitHandover{}}
	if !h.leading || !h.sure() {
		return out // what was lent last is not known to be all: another may lead
	}
	h.leading = false
	now := h.opts.Now()
	budget := maxHandover
	for _, p := range h.policies {
		for id, a := range p.accounts {
			if a.lending == nil || a.waits() {
				continue
			}
			l, ok := a.lending.stop(now, budget)
			if !ok || budget <= 0 {
				continue // its pool starts empty, as after a crash
			}
			budget -= 1 + len(l.Accounts)
			out.Limits[digest(id)] = l
		}
	}
	clear(h.hungry)
	return out
}

// stop ends the lead of one limit and lists at most budget accounts: those with the least left.
func (b *lending) stop(now int64, budget int) (LimitHandover, bool) {
	ceiling, outstanding := b.fleet.Ceiling()
	b.fleet.Stop(now)
	rest, ok := b.fleet.Rest()
	if !ok {
		return LimitHandover{}, false
	}
	l := LimitHandover{Rest: rest, Shared: b.fleet.Shared(), Ceiling: ceiling, Outstanding: outstanding, Accounts: map[string]escrow.Remainder{}}
	left := map[string]escrow.Remainder{}
	for key, m := range b.mints {
		left[key], _ = m.Remainder()
	}
	keys := slices.SortedFunc(maps.Keys(left), func(x, y string) int {
		return cmp.Or(cmp.Compare(left[x].Level, left[y].Level), cmp.Compare(x, y))
	})
	for i, key := range keys {
		if i < budget {
			l.Accounts[hex.EncodeToString([]byte(key))] = left[key]
		} else {
			l.Rest = l.Rest.Below(left[key])
		}
	}
	return l, true
}

// digest names a limit in few bytes.
func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// Marshal writes a handover, or nothing where it would be too large.
func (o Handover) Marshal() ([]byte, error) {
	if len(o.Limits) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(o); err != nil {
		return nil, fmt.Errorf("handover: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("handover: %w", err)
	}
	if b.Len() > maxHandoverBytes*3/4 {
		return nil, fmt.Errorf("handover: %d bytes are too many", b.Len())
	}
	return b.Bytes(), nil
}

// ParseHandover reads a handover. What is not one is an error, and the pools start empty.
func ParseHandover(b []byte) (Handover, error) {
	var out Handover
	if len(b) == 0 {
		return out, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return out, fmt.Errorf("handover: %w", err)
	}
	d := json.NewDecoder(io.LimitReader(z, 4<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return Handover{}, fmt.Errorf("handover: %w", err)
	}
	for name, l := range out.Limits {
		if err := l.check(); err != nil {
			return Handover{}, fmt.Errorf("handover: limit %s: %w", name, err)
		}
	}
	return out, nil
}

// check refuses what no leader writes: a pool or loans below nothing or beyond the largest burst.
func (l LimitHandover) check() error {
	const most = 1_000_000_000
	for _, r := range append(slices.Collect(maps.Values(l.Accounts)), l.Rest) {
		if r.Level < 0 || r.Level > most*escrow.Micro || r.Lent < 0 || r.Lent > most {
			return fmt.Errorf("level of %d, %d lent", r.Level, r.Lent)
		}
	}
	if l.Ceiling < 1 || l.Ceiling > most || l.Outstanding < 1 || l.Outstanding > most {
		return fmt.Errorf("ceiling of %d, loans of %d", l.Ceiling, l.Outstanding)
	}
	return nil
}

// accounts are the restored accounts by key.
func (l LimitHandover) accounts() map[string]escrow.Remainder {
	out := map[string]escrow.Remainder{}
	for name, r := range l.Accounts {
		if key, err := hex.DecodeString(name); err == nil {
			out[string(key)] = r
		}
	}
	return out
}
