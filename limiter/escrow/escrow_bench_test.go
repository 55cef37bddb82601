// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"strconv"
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

func BenchmarkTakeOfAToken(b *testing.B) {
	s := escrow.NewSleeper(sec, 0)
	s.Welcome(escrow.Welcome{Epoch: 1}, 0)
	h := s.Account(0)
	h.Loan(escrow.Loan{Epoch: 1, Born: 1, Granted: 1 << 60})
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 100
		if !h.Take(1, now) {
			b.Fatal("refused")
		}
	}
}

// A thousand pods want more than there is: what the leader does for one claim, and for one tick's loans.
func BenchmarkClaimAndLendAmongAThousandPods(b *testing.B) {
	f := escrow.NewFleet(limit(10_000, 1_000), sec, escrow.Recovery{Epoch: 1}, 0)
	f.Lease(1<<60, 0)
	m := f.Account(0)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
		f.Hello(ids[i], ids[i], escrow.Beat{Epoch: 1, Sent: 1}, 0)
	}
	granted := make(map[string]int64, len(ids))
	emit := func(id string, l escrow.Loan) { granted[id] = l.Granted }
	now, i := int64(0), 0
	b.ReportAllocs()
	for b.Loop() {
		now += 20_000
		i = (i + 1) % len(ids)
		g := granted[ids[i]]
		m.Claim(ids[i], escrow.Claim{Epoch: 1, Sent: now, Granted: g, Spent: g, Want: g + 20}, now)
		m.Lend(now, emit)
	}
}

func TestTakingATokenAllocatesNothing(t *testing.T) {
	s := escrow.NewSleeper(sec, 0)
	s.Welcome(escrow.Welcome{Epoch: 1}, 0)
	h := s.Account(1)
	h.Loan(escrow.Loan{Epoch: 1, Born: 1, Granted: 1 << 40})
	now := int64(1)
	if n := testing.AllocsPerRun(100, func() {
		now++
		if !h.Take(1, now) {
			t.Fatal("refused")
		}
		h.Arrive(1, now)
		h.Claim(now)
	}); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

func TestAClaimThatCannotBeIsNotHeard(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.lend(a, 50)
	pool, lent := st.pool(), st.mint.Lent()
	st.mint.Claim("a", escrow.Claim{Epoch: 1, Born: 1 << 40, Sent: 1 << 40, Granted: 0, Spent: 1 << 30}, st.now)
	st.mint.Claim("a", escrow.Claim{Epoch: 1, Born: 1 << 40, Sent: 1 << 40, Granted: -9}, st.now)
	if st.pool() != pool || st.mint.Lent() != lent {
		t.Errorf("a claim that cannot be moved the pool to %d and what is lent to %d", st.pool(), st.mint.Lent())
	}
}
