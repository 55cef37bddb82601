// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/headgate/headgate/limiter/escrow"
)

// Pod is one process of the sidecar.
type Pod struct {
	// ID names the process.
	ID string
	// Rate is what is asked for, in requests per second, and Cost what one of them costs, in tokens.
	Rate float64
	Cost int64
	// Admitted is the cost admitted so far.
	Admitted int64

	w        *World
	clock    Clock
	sleeper  *escrow.Sleeper
	holder   *escrow.Holder
	leader   *Leader // whose welcome it follows
	held     []request
	cost     int64 // of what is held
	alive    bool
	draining bool
	dialled  bool
	proven   bool // that it has ended
	deaf     bool // nothing reaches it
	mute     bool // nothing comes from it
	frozen   int64
	asked    int64 // when it last dialled
	patient  bool  // reserves first, and decides later
	up, down wire
	pursed   bool // takes from a purse what is at hand
}

type request struct {
	cost  int64
	until int64
}

type (
	dial  struct{}
	hello struct {
		beat  escrow.Beat
		claim escrow.Claim
	}
	drained struct{ claim escrow.Claim }
)

// Start starts a pod.
func (w *World) Start(rate float64) *Pod {
	p := &Pod{ID: fmt.Sprintf("pod-%d", len(w.pods)), Rate: rate, Cost: 1, w: w, clock: w.clock(), alive: true, asked: -1 << 60}
	p.sleeper = escrow.NewSleeper(w.sleep, p.time())
	p.holder = p.sleeper.Account(p.time())
	w.pods = append(w.pods, p)
	w.Every(w.Step, func() bool {
		if p.alive && w.now >= p.frozen {
			p.step()
		}
		return p.alive
	})
	return p
}

func (p *Pod) time() int64 { return p.clock.at(p.w.now) }

// do is what a frozen process does when it goes on, and then what follows from it.
func (p *Pod) do(work func()) {
	if !p.alive {
		return
	}
	if p.w.now < p.frozen {
		p.w.At(p.frozen, func() { p.do(work) })
		return
	}
	work()
	p.serve()
	p.talk()
}

func (p *Pod) send(d *Leader, m any) {
	if d != nil {
		p.w.carry(&p.up, p.mute, func() { d.do(func() { d.receive(p, m) }) })
	}
}

// step is what happens as time passes.
func (p *Pod) step() {
	w := p.w
	if w.leader != nil && p.leader != w.leader && w.now-p.asked >= 20*millisecond {
		p.asked = w.now
		p.dialled = true
		p.send(w.leader, dial{})
	}
	if p.Rate > 0 && !p.draining {
		for range w.poisson(p.Rate * float64(w.Step) / 1e9) {
			p.arrive()
		}
	}
	p.serve()
	p.talk()
	if w.Forgetful && p.holder.Forgettable(p.time()) {
		p.holder.Forget()
		p.holder = p.sleeper.Account(p.time())
	}
}

// welcome follows a leader: it adopts the epoch first and reports then.
func (p *Pod) welcome(d *Leader, m escrow.Welcome) {
	if !p.sleeper.Welcome(m, p.time()) {
		return
	}
	p.leader = d
	p.send(d, hello{p.sleeper.Hello(p.time()), p.holder.Registration(p.time())})
}

func (p *Pod) arrive() {
	p.w.Offered += p.Cost
	if p.w.Peer != nil {
		if p.w.Peer.admit(p.w, p) {
			p.admitted(p.Cost)
		}
		return
	}
	if p.pursed && p.holder.Purse().Take(p.Cost) {
		p.admitted(p.Cost)
		return
	}
	p.holder.Arrive(p.Cost, p.time())
	p.held = append(p.held, request{p.Cost, p.w.now + p.w.Hold})
	p.cost += p.Cost
}

// serve admits what it can, in the order of arrival, and denies what has waited for too long.
func (p *Pod) serve() {
	if p.pursed {
		if len(p.held) > 0 {
			p.holder.Empty(p.time())
		}
		defer func() {
			if len(p.held) == 0 {
				p.holder.Stock(p.time())
			}
		}()
	}
	n := 0
	for n < len(p.held) {
		r := p.held[n]
		if r.until < p.w.now {
			p.w.Denied += r.cost
		} else if !p.admit(r.cost) {
			break
		}
		p.cost -= r.cost
		n++
	}
	p.held = append(p.held[:0], p.held[n:]...)
	first := int64(0)
	if len(p.held) > 0 {
		first = p.held[0].cost
	}
	p.holder.Queue(p.cost, first)
}

func (p *Pod) admit(cost int64) bool {
	w := p.w
	if !p.patient {
		if !p.holder.Take(cost, p.time()) {
			return false
		}
		p.admitted(cost)
		return true
	}
	r, ok := p.holder.Reserve(cost, p.time())
	if !ok {
		return false
	}
	cancel := w.rand.IntN(4) == 0
	w.After(w.rand.Int64N(20*millisecond), func() {
		p.do(func() {
			if cancel {
				p.holder.Cancel(r)
				return
			}
			p.holder.Commit(r)
			p.admitted(cost)
		})
	})
	return true
}

func (p *Pod) admitted(cost int64) {
	p.w.Admitted += cost
	p.Admitted += cost
	p.w.Oracle.Admit(cost, p.w.now)
}

// talk says what is due.

func (p *Pod) talk() {
	if p.leader == nil {
		return
	}
	if b, ok := p.sleeper.Beat(p.time()); ok {
		p.send(p.leader, b)
	}
	if c, ok := p.holder.Claim(p.time()); ok {
		p.send(p.leader, c)
	}
}

// Kill ends the process without a word; the proof comes later, or never where after is below 0.
func (p *Pod) Kill(after int64) {
	p.alive = false
	p.prove(after)
}

func (p *Pod) prove(after int64) {
	if after < 0 {
		return
	}
	p.w.After(after, func() {
		p.proven = true
		if d := p.w.leader; d != nil {
			d.do(func() {
				d.gone(p)
				d.flush()
			})
		}
	})
}

// Shutdown ends the process in order: it serves for a while, then hands back what it has, and goes.
func (p *Pod) Shutdown(serves, proof int64) {
	p.draining = true
	p.sleeper.Drain()
	p.w.After(serves, func() {
		p.do(func() {
			p.send(p.leader, drained{p.holder.Final(p.time())})
			p.Kill(proof)
		})
	})
}

// Cut cuts the links between the pod and every leader, one way or both.
func (p *Pod) Cut(deaf, mute bool) { p.deaf, p.mute = deaf, mute }

// Freeze stops the process, not its clock.
func (p *Pod) Freeze(dt int64) { p.frozen = max(p.frozen, p.w.now+dt) }
