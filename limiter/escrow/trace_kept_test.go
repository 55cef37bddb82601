// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/limiter/escrow"
)

func TestAnIdleLimitHasAllOfItsBurst(t *testing.T) {
	for _, burst := range []int64{1, 2, 5, 20, 400} {
		for _, pods := range []int{1, 2, 7} {
			t.Run(fmt.Sprintf("burst %d over %d pods", burst, pods), func(t *testing.T) {
				st := newStage(t, escrow.Limit{Requests: 1, Period: uint64(3600 * sec), Burst: burst}, escrow.Recovery{Epoch: 1, First: true})
				st.stand = true // what stands by elsewhere is called back
				for i := range pods {
					st.join(fmt.Sprint(i), 1)
				}
				st.pass(3 * sec)
				var taken int64
				for range 2 * burst {
					st.procs[0].h.Queue(1, 1)
					st.pass(10 * ms) // as long as a request is held
					if st.procs[0].h.Take(1, st.now) {
						taken++
					}
				}
				if taken != burst {
					t.Errorf("one pod admitted %d", taken)
				}
			})
		}
	}
}

func TestAShareThatWakesTakesItsPlaceInThePool(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.join("b", 1)
	st.pass(2 * sec)
	if n := st.pool(); n != 400 {
		t.Fatalf("the pool of an idle limit holds %d", n)
	}
	a.mute = true
	st.pass(3 * sec)
	if own := a.h.Available(st.now); own < 45 {
		t.Fatalf("a pod that nobody hears has earned %d by itself", own)
	}
	if n := st.pool(); n > 350 {
		t.Errorf("%d tokens are in the pool while a pod may have 50 of 400", n)
	}
}

func TestWhatASleepingShareHoldsIsNotInThePool(t *testing.T) {
	for name, laid := range map[string]bool{"at hand": false, "laid out for all goroutines": true} {
		t.Run(name, func(t *testing.T) { testSleepingShare(t, laid) })
	}
}

func testSleepingShare(t *testing.T, laid bool) {
	t.Helper()
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.join("b", 1)
	st.pass(2 * sec)
	a.mute = true
	st.pass(4 * sec)
	if laid {
		a.h.Stock(st.now)
	}
	a.mute = false
	st.pass(10 * sec)
	own := a.h.Available(st.now)
	if a.s.Isolated(st.now) || own < 45 {
		t.Fatalf("isolated %v, with %d tokens of its own", a.s.Isolated(st.now), own)
	}
	if n := st.pool(); n+own > 400 {
		t.Errorf("%d tokens in the pool and %d in a share that sleeps are more than 400", n, own)
	}
	a.h.Empty(st.now)
	a.h.Take(own, st.now)
	st.pass(10 * sec)
	if n := st.pool(); n < 395 {
		t.Errorf("the pool holds %d of 400 though what the share held has been spent", n)
	}
}

func TestAPoolThatNobodyLookedAtHasNoRoomForWhatAShareHeldMeanwhile(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	other := st.fleet.Account(st.now)
	st.pass(2 * sec)
	if n := other.Pool(st.now) / escrow.Micro; n != 400 {
		t.Fatalf("the pool of an account that nobody has borrowed from holds %d", n)
	}
	a.mute = true
	for range 3000 { // nobody asks for anything meanwhile
		st.now += ms
		st.fleet.Flush(st.now, func(_ string, o escrow.Order) { a.s.Order(o, st.now) })
	}
	a.h.Take(a.h.Available(st.now), st.now) // and so it may be with the other account
	a.mute = false
	st.pass(100 * ms)
	if n := other.Pool(st.now) / escrow.Micro; n > 320 {
		t.Errorf("the pool holds %d, beside 100 that a share had and spent in this moment", n)
	}
}

func TestALatePromiseDoesNotSayThatAShareHoldsLess(t *testing.T) {
	for name, order := range map[string][2]int{"in order": {0, 1}, "overtaken": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
			a := st.join("a", 1)
			st.pass(100 * ms)
			st.procs = nil
			beat := func(sent, kept int64) escrow.Beat {
				return escrow.Beat{Epoch: 1, Sent: st.now + sent, Heard: st.now, Promise: true, Acked: 1 << 40, Units: a.s.Units(), Kept: kept * escrow.Micro}
			}
			beats := []escrow.Beat{beat(1, 0), beat(2, 100)}
			for _, i := range order {
				st.fleet.Beat("a", beats[i], st.now)
			}
			st.now += 900 * ms // the promise holds, and the pool would be full again
			if n := st.pool(); n > 300 {
				t.Errorf("%d tokens are in the pool beside 100 in a share", n)
			}
		})
	}
}

func TestLoansLeaveRoomForEveryShareThatMayWake(t *testing.T) {
	st := newStage(t, limit(1, 400), escrow.Recovery{Epoch: 1, First: true})
	for i := range 5 {
		st.join(fmt.Sprint(i), 1)
	}
	st.pass(2 * sec)
	for _, p := range st.procs {
		p.h.Queue(100, 1)
	}
	st.pass(100 * ms)
	if n := st.mint.Lent(); n > 300 {
		t.Errorf("%d of 400 tokens are lent, and cannot be taken back when shares of 100 wake", n)
	}
}

func TestAnAccountThatIsBegunWhileTheShareSleepsHasNothingThatWasNotReported(t *testing.T) {
	st := newStage(t, limit(100, 400), escrow.Recovery{Epoch: 1, First: true})
	a := st.join("a", 1)
	st.pass(2 * sec)
	a.mute = true
	st.pass(4 * sec)
	a.h.Take(a.h.Available(st.now), st.now)
	a.mute = false
	st.pass(100 * ms)
	fresh := a.s.Account(st.now)
	if n := fresh.Available(st.now); n > 10 {
		t.Errorf("an account that is begun now has %d tokens of a share that sleeps", n)
	}
}
