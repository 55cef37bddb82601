// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/limiter/escrow"
)

// Leader is one process of the operator while it leads, or believes that it does.
type Leader struct {
	w      *World
	clock  Clock
	epoch  uint64
	fleet  *escrow.Fleet
	mints  []*escrow.Mint  // by account
	ended  map[string]bool // pods proven gone, whose messages are dropped
	alive  bool
	frozen int64 // until when
	apart  bool  // cannot reach the API server: its lease is not renewed
	renews int64
}

// remainder is a leader's last word, where the next leader finds it once.
type remainder struct {
	rest     escrow.Remainder
	accounts []escrow.Remainder
	shared   bool
}

// Elect makes a process the leader, as soon as the lease of the one before allows.
func (w *World) Elect() {
	if w.leader != nil && w.leader.alive && !w.leader.apart {
		return
	}
	at := w.now
	for _, d := range w.leaders {
		at = max(at, d.renews+w.Lease+w.Lease/400)
	}
	w.leader = nil
	w.At(at, func() {
		if w.leader == nil {
			w.Lead()
		}
	})
}

// Lead makes a process the leader at once: the first of a world, or the next where the one before can grant no more.
func (w *World) Lead() {
	r := escrow.Recovery{
		Epoch: w.epoch + 1, First: w.epoch == 0,
		Ceiling: w.ceiling.Burst, CeilingOutstanding: w.ceiling.Outstanding(),
	}
	left := w.left
	w.left = nil // taken in once, with the epoch
	if left != nil {
		r.Rest, r.Unshared = &left.rest, !left.shared
	}
	w.epoch++
	d := &Leader{w: w, clock: w.clock(), epoch: w.epoch, ended: map[string]bool{}, alive: true}
	for _, p := range w.pods {
		if p.proven {
			d.ended[p.ID] = true
		} else if p.dialled {
			r.Existing = append(r.Existing, p.ID)
		}
	}
	d.fleet = escrow.NewFleet(w.limit, w.sleep, r, d.time())
	for k := range w.Oracles {
		if left != nil {
			d.mints = append(d.mints, d.fleet.Restore(left.accounts[k], d.time()))
		} else {
			d.mints = append(d.mints, d.fleet.Account(d.time()))
		}
	}
	w.leaders = append(w.leaders, d)
	w.leader = d
	d.renew()
	w.Every(w.Lease/4, func() bool {
		if d.alive && !d.apart {
			d.do(d.renew)
		}
		return d.alive && !d.apart
	})
	w.Every(w.Step, func() bool {
		if d.alive && w.now >= d.frozen {
			begun := time.Time{}
			if w.Metered {
				begun = time.Now()
			}
			d.flush()
			if w.Metered {
				w.Worked += time.Since(begun)
			}
		}
		return d.alive
	})
}

func (d *Leader) renew() {
	d.renews = d.w.now
	d.fleet.Lease(d.time()+d.w.Lease, d.time())
}

func (d *Leader) time() int64 { return d.clock.at(d.w.now) }

// do is work that a frozen process does when it goes on.
func (d *Leader) do(work func()) {
	if !d.alive {
		return
	}
	if d.w.now < d.frozen {
		d.w.At(d.frozen, func() { d.do(work) })
		return
	}
	work()
}

// Freeze stops the process, not its clock.
func (d *Leader) Freeze(dt int64) { d.frozen = d.w.now + dt }

// Crash ends the process without a word.
func (w *World) Crash() {
	if w.leader != nil {
		w.leader.alive = false
		w.Elect()
	}
}

// Isolate cuts the leader off from the API server; its pods still reach it.
func (w *World) Isolate() {
	if w.leader != nil {
		w.leader.apart = true
		w.Elect()
	}
}

// Restart hands leadership over in order.
func (w *World) Restart(after int64) {
	d := w.leader
	if d == nil || w.now < d.frozen {
		return
	}
	d.fleet.Stop(d.time())
	if rest, ok := d.fleet.Rest(); ok && (!w.Hasty || w.rand.IntN(4) > 0) {
		w.left = &remainder{rest: rest, shared: d.fleet.Shared()}
		for _, m := range d.mints {
			account, _ := m.Remainder()
			w.left.accounts = append(w.left.accounts, account)
		}
	}
	d.renews = -w.Lease * 2
	w.leader = nil
	w.After(after, func() {
		d.alive = false
		if w.leader == nil {
			w.Lead()
		}
	})
}

// flush sends what is due.
func (d *Leader) flush() {
	w, now := d.w, d.time()
	d.fleet.Flush(now, func(id string, o escrow.Order) {
		p := w.pod(id)
		w.carry(&p.down, p.deaf, func() { p.do(func() { p.sleeper.Order(o, p.time()) }) })
	})
	for k, m := range d.mints {
		m.Lend(now, func(id string, l escrow.Loan) {
			p := w.pod(id)
			w.carry(&p.down, p.deaf, func() { p.do(func() { p.tills[k].holder.Loan(l) }) })
		})
		if w.Forgetful && m.Forgettable(now) {
			m.Forget()
			d.mints[k] = d.fleet.Account(now)
		}
	}
	if w.edited && d == w.leader && d.fleet.Limit() == w.limit && d.fleet.Leading(now) && d.fleet.Settled() {
		w.edited = false
		w.ceiling = w.limit
		for _, o := range w.Oracles {
			o.SettledAt(w.limit, w.now)
		}
	}
}

func (w *World) pod(id string) *Pod {
	var i int
	if _, err := fmt.Sscanf(id, "pod-%d", &i); err != nil {
		panic(err)
	}
	return w.pods[i]
}

// receive takes in a message of a pod.
func (d *Leader) receive(p *Pod, m any) {
	if d.w.Metered {
		begun := time.Now()
		defer func() { d.w.Worked += time.Since(begun) }()
	}
	if d.ended[p.ID] {
		return
	}
	now := d.time()
	switch m := m.(type) {
	case dial:
		if !d.fleet.Leading(now) {
			return
		}
		w := escrow.Welcome{Epoch: d.epoch, Sent: now}
		d.w.carry(&p.down, p.deaf, func() { p.do(func() { p.welcome(d, w) }) })
	case hello:
		d.fleet.Hello(p.ID, p.ID, m.beat, now)
		d.hear(p, m.claims, now)
	case escrow.Beat:
		d.fleet.Beat(p.ID, m, now)
	case claim:
		d.mints[m.account].Claim(p.ID, m.Claim, now)
	case drained:
		d.hear(p, m.claims, now)
		d.gone(p)
	}
	d.flush()
}

// hear takes in the claims of every account.
func (d *Leader) hear(p *Pod, claims []escrow.Claim, now int64) {
	for k, c := range claims {
		d.mints[k].Claim(p.ID, c, now)
	}
}

// gone takes in the proof that a pod has ended.
func (d *Leader) gone(p *Pod) {
	d.ended[p.ID] = true
	d.fleet.Gone(p.ID, d.time())
	d.fleet.Absent(p.ID, d.time())
}
