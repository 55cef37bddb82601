// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/limiter/escrow"
)

const whole = 120

// step is one call to the ledger, followed by a Plan whose grants must be want.
type step struct {
	do   func(l *escrow.Ledger)
	at   int64
	want []escrow.Grant
}

func joins(id string, reported uint64) func(*escrow.Ledger) {
	return func(l *escrow.Ledger) {
		l.Join(id, reported, 0)
		l.Register(id, reported, 0)
		l.SetWant(id, escrow.WantFull)
	}
}

func grant(id string, units uint64) escrow.Grant { return escrow.Grant{Holder: id, Units: units} }

// Each trace plans as round 1, 2, 3, ... after each step; acks name those rounds.
func TestCapacityMovesOnlyAfterItWasGivenUp(t *testing.T) {
	ack := func(id string, seq uint64, at int64) func(*escrow.Ledger) {
		return func(l *escrow.Ledger) { l.Ack(id, seq, at) }
	}
	none := func(*escrow.Ledger) {}
	tests := map[string]struct {
		fill         uint64
		unregistered []string
		steps        []step
	}{
		"the first pod gets the whole limit": {steps: []step{
			{do: joins("a", 0), want: []escrow.Grant{grant("a", 120)}},
		}},
		"a second pod waits until the first has acknowledged the smaller share": {steps: []step{
			{do: joins("a", 0), want: []escrow.Grant{grant("a", 120)}},
			{do: ack("a", 1, 0)},
			{do: joins("b", 0), want: []escrow.Grant{grant("a", 60)}},
			{do: none},
			{do: ack("a", 3, 0), want: []escrow.Grant{grant("b", 60)}},
		}},
		"an acknowledgement of an older share frees nothing": {steps: []step{
			{do: joins("a", 0), want: []escrow.Grant{grant("a", 120)}},
			{do: joins("b", 0), want: []escrow.Grant{grant("a", 60)}},
			{do: ack("a", 1, 0)},
			{do: ack("a", 1, 0)},
			{do: ack("a", 2, 0), want: []escrow.Grant{grant("b", 60)}},
		}},
		"only the first shares of a limit's life are filled": {fill: whole, steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 0)(l); joins("b", 0)(l) },
				want: []escrow.Grant{{Holder: "a", Units: 60, Fill: 60}, {Holder: "b", Units: 60, Fill: 60}}},
			{do: func(l *escrow.Ledger) { l.Ack("a", 1, 0); l.Ack("b", 1, 0); joins("c", 0)(l) },
				want: []escrow.Grant{grant("a", 40), grant("b", 40)}},
			{do: func(l *escrow.Ledger) { l.Ack("a", 2, 0); l.Ack("b", 2, 0) }, want: []escrow.Grant{grant("c", 40)}},
		}},
		"what a departed pod had goes to a newborn at once": {steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 60)(l); joins("b", 60)(l) }},
			{do: func(l *escrow.Ledger) { l.Gone("b", 0); joins("c", 0)(l) }, want: []escrow.Grant{grant("c", 60)}},
		}},
		"what a departed pod had goes to existing shares only after the delay": {steps: []step{
			{do: func(l *escrow.Ledger) { l.SetDelay(1000); joins("a", 60)(l); joins("b", 60)(l) }},
			{do: func(l *escrow.Ledger) { l.Gone("b", 5) }, at: 5},
			{do: none, at: 1004},
			{do: none, at: 1005, want: []escrow.Grant{grant("a", 120)}},
		}},
		"a silent pod keeps its share until it is proven gone": {steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 60)(l); joins("b", 60)(l) }},
			{do: func(l *escrow.Ledger) { l.Disconnect("b") }},
			{do: joins("c", 0), want: []escrow.Grant{grant("a", 30)}},
			{do: ack("a", 3, 0), want: []escrow.Grant{grant("c", 30)}},
			{do: ack("c", 4, 0)},
			{do: func(l *escrow.Ledger) { l.Gone("b", 0) }, want: []escrow.Grant{grant("a", 60), grant("c", 60)}},
		}},
		"a silent pod that never acknowledged counts with the larger share": {steps: []step{
			{do: joins("a", 120)},
			{do: joins("b", 0), want: []escrow.Grant{grant("a", 60)}},
			{do: func(l *escrow.Ledger) { l.Disconnect("a") }},
			{do: joins("a", 60), want: []escrow.Grant{grant("b", 60)}},
		}},
		"a draining pod keeps its share and is not given more": {steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 60)(l); joins("b", 60)(l) }},
			{do: func(l *escrow.Ledger) { l.SetWant("b", escrow.WantKeep); l.Gone("a", 0) }},
			{do: joins("c", 0), want: []escrow.Grant{grant("c", 60)}},
		}},
		"a pod that serves nothing gives its share back": {steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 60)(l); joins("b", 60)(l) }},
			{do: func(l *escrow.Ledger) { l.SetWant("b", escrow.WantNone) }, want: []escrow.Grant{grant("b", 0)}},
			{do: ack("b", 2, 0), want: []escrow.Grant{grant("a", 120)}},
		}},
		"after a fail-over a pod that has not registered may hold all that the others do not": {
			unregistered: []string{"a", "b"},
			steps: []step{
				{do: joins("c", 0)},
				{do: joins("a", 40), want: []escrow.Grant{grant("a", 20)}},
				{do: ack("a", 2, 0), want: []escrow.Grant{grant("c", 20)}},
				{do: ack("c", 3, 0)},
				{do: joins("b", 40), want: []escrow.Grant{grant("a", 40), grant("c", 40)}},
			}},
		"an unregistered pod that is proven gone frees what nobody reported": {
			unregistered: []string{"a", "b"},
			steps: []step{
				{do: joins("a", 60)},
				{do: func(l *escrow.Ledger) { l.Register("b", 0, 0) }, want: []escrow.Grant{grant("a", 120)}},
			}},
		"pods that report more than the whole get no company until they have shrunk": {steps: []step{
			{do: func(l *escrow.Ledger) { joins("a", 120)(l); joins("b", 120)(l) },
				want: []escrow.Grant{grant("a", 60), grant("b", 60)}},
			{do: joins("c", 0), want: []escrow.Grant{grant("a", 40), grant("b", 40)}},
			{do: ack("a", 2, 0)},
			{do: ack("b", 2, 0), want: []escrow.Grant{grant("c", 40)}},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := escrow.New(whole, tc.fill, tc.unregistered)
			for i, s := range tc.steps {
				s.do(l)
				if diff := cmp.Diff(s.want, l.Plan(uint64(i+1), s.at)); diff != "" {
					t.Fatalf("round %d: grants differ (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}
