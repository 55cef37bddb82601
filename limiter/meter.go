// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "sync"

// Colour is what a Meter makes of a request.
type Colour int

// The colours, from worst to best.
const (
	Red    Colour = iota // beyond both bursts
	Yellow               // within the excess burst
	Green                // within the committed burst
)

// String returns the name of c.
func (c Colour) String() string {
	switch c {
	case Green:
		return "green"
	case Yellow:
		return "yellow"
	}
	return "red"
}

// Meter is the single rate three colour marker of RFC 2697. It has one rate (CIR) and two buckets, committed (CBS) and
// excess (EBS), both full at first. What is earned goes to the committed bucket, and to the excess bucket while the
// committed one is full.
//
// In every window of length W the requests marked green cost at most CBS + CIR*W and those marked green or yellow CBS +
// EBS + CIR*W, each to within a millionth of a token. All methods may be called concurrently; they take a lock for some
// nanoseconds and allocate nothing.
type Meter struct {
	mu                sync.Mutex
	nums              *numbers
	earned            uint64 // up to which it was given to the buckets
	committed, excess uint64
	cbs, ebs          uint64
}

// NewMeter returns a meter with full buckets that earns from now on. It fails with ErrBurst for a burst that is
// negative or above MaxBurst.
func NewMeter(cir Rate, cbs, ebs Tokens) (*Meter, error) { return NewMeterAt(Now(), cir, cbs, ebs) }

// NewMeterAt is NewMeter at t.
func NewMeterAt(t Time, cir Rate, cbs, ebs Tokens) (*Meter, error) {
	if err := checkBursts(cbs, ebs); err != nil {
		return nil, err
	}
	m := &Meter{nums: newNumbers(t, cir, 0), committed: uint64(cbs), excess: uint64(ebs), cbs: uint64(cbs), ebs: uint64(ebs)}
	m.earned = m.nums.base
	return m, nil
}

func checkBursts(bursts ...Tokens) error {
	for _, b := range bursts {
		if err := checkBurst(b); err != nil {
			return err
		}
	}
	return nil
}

// Mark is MarkAt(Now(), cost, Green).
func (m *Meter) Mark(cost uint64) Colour { return m.MarkAt(Now(), cost, Green) }

// MarkAt colours a request of cost whole tokens that comes at t with the colour that an earlier meter gave it. With
// Green the meter is colour-blind. It takes the cost from the committed bucket if it marks Green, from the excess
// bucket if it marks Yellow, and nothing if Red; a request that comes Yellow is never marked Green, and one that comes
// Red stays Red.
func (m *Meter) MarkAt(t Time, cost uint64, before Colour) Colour {
	c := price(cost)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earnLocked(t)
	switch {
	case before >= Green && c <= m.committed:
		m.committed -= c
		return Green
	case before >= Yellow && c <= m.excess:
		m.excess -= c
		return Yellow
	}
	return Red
}

// BalanceAt returns what the committed and the excess bucket hold at t.
func (m *Meter) BalanceAt(t Time) (committed, excess Tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earnLocked(t)
	return Tokens(m.committed), Tokens(m.excess)
}

// earnLocked gives the buckets what was earned up to t. The caller holds mu.
func (m *Meter) earnLocked(t Time) {
	l, ok := m.nums.from(t)
	if !ok {
		n, shift := m.nums.rebased(t)
		// What was earned before the shift fills both buckets, or else is still to be given.
		m.nums, m.earned = n, shifted(m.earned, shift)
		l, _ = n.at(t)
	}
	if l.earned <= m.earned {
		return
	}
	more := l.earned - m.earned
	m.earned = l.earned
	green := min(more, m.cbs-m.committed)
	m.committed += green
	m.excess += min(more-green, m.ebs-m.excess)
}

// Reconfigure is ReconfigureAt(Now(), cir, cbs, ebs).
func (m *Meter) Reconfigure(cir Rate, cbs, ebs Tokens) error {
	return m.ReconfigureAt(Now(), cir, cbs, ebs)
}

// ReconfigureAt puts a rate and bursts in force at t and mints nothing: larger bursts add room, smaller ones clamp. It
// fails with ErrBurst.
func (m *Meter) ReconfigureAt(t Time, cir Rate, cbs, ebs Tokens) error {
	if err := checkBursts(cbs, ebs); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.earnLocked(t)
	m.nums = m.nums.next(t, cir, 0, AsEarned)
	m.cbs, m.ebs = uint64(cbs), uint64(ebs)
	m.committed, m.excess = min(m.committed, m.cbs), min(m.excess, m.ebs)
	return nil
}
