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
	tills    []*till // by account
	leader   *Leader // whose welcome it follows
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

// till is the pod's side of one account.
type till struct {
	account int
	holder  *escrow.Holder
	held    []request
	cost    int64 // of what is held
}

type request struct {
	cost  int64
	until int64
}

type (
	dial  struct{}
	hello struct {
		beat   escrow.Beat
		claims []escrow.Claim
	}
	claim struct {
		account int
		escrow.Claim
	}
	drained struct{ claims []escrow.Claim }
)

// Start starts a pod.
func (w *World) Start(rate float64) *Pod {
	p := &Pod{ID: fmt.Sprintf("pod-%d", len(w.pods)), Rate: rate, Cost: 1, w: w, clock: w.clock(), alive: true, asked: -1 << 60}
	p.sleeper = escrow.NewSleeper(w.sleep, p.time())
	for k := range w.Oracles {
		p.tills = append(p.tills, &till{account: k, holder: p.sleeper.Account(p.time())})
	}
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
	for _, t := range p.tills {
		if w.Forgetful && t.holder.Forgettable(p.time()) {
			t.holder.Forget()
			t.holder = p.sleeper.Account(p.time())
		}
	}
}

// welcome follows a leader: it adopts the epoch first and reports then.
func (p *Pod) welcome(d *Leader, m escrow.Welcome) {
	if !p.sleeper.Welcome(m, p.time()) {
		return
	}
	p.leader = d
	first := hello{beat: p.sleeper.Hello(p.time())}
	for _, t := range p.tills {
		first.claims = append(first.claims, t.holder.Registration(p.time()))
	}
	p.send(d, first)
}

func (p *Pod) arrive() {
	p.w.Offered += p.Cost
	if p.w.Peer != nil {
		if p.w.Peer.admit(p.w, p) {
			p.admitted(p.tills[0], p.Cost)
		}
		return
	}
	t := p.tills[0]
	if n := len(p.tills); n > 1 {
		t = p.tills[p.w.rand.IntN(n)]
	}
	if p.pursed && t.holder.Purse().Take(p.Cost) {
		p.admitted(t, p.Cost)
		return
	}
	t.holder.Arrive(p.Cost, p.time())
	t.held = append(t.held, request{p.Cost, p.w.now + p.w.Hold})
	t.cost += p.Cost
}

// serve admits what it can, in the order of arrival, and denies what has waited for too long.
func (p *Pod) serve() {
	for _, t := range p.tills {
		p.serveOne(t)
	}
}

func (p *Pod) serveOne(t *till) {
	if p.pursed {
		if len(t.held) > 0 {
			t.holder.Empty(p.time())
		}
		defer func() {
			if len(t.held) == 0 {
				t.holder.Stock(p.time())
			}
		}()
	}
	n := 0
	for n < len(t.held) {
		r := t.held[n]
		if r.until < p.w.now {
			p.w.Denied += r.cost
		} else if !p.admit(t, r.cost) {
			break
		}
		t.cost -= r.cost
		n++
	}
	t.held = append(t.held[:0], t.held[n:]...)
	first := int64(0)
	if len(t.held) > 0 {
		first = t.held[0].cost
	}
	t.holder.Queue(t.cost, first)
}

func (p *Pod) admit(t *till, cost int64) bool {
	w := p.w
	if !p.patient {
		if !t.holder.Take(cost, p.time()) {
			return false
		}
		p.admitted(t, cost)
		return true
	}
	h := t.holder
	r, ok := h.Reserve(cost, p.time())
	if !ok {
		return false
	}
	cancel := w.rand.IntN(4) == 0
	w.After(w.rand.Int64N(20*millisecond), func() {
		p.do(func() {
			if cancel {
				h.Cancel(r)
				return
			}
			h.Commit(r)
			p.admitted(t, cost)
		})
	})
	return true
}

func (p *Pod) admitted(t *till, cost int64) {
	p.w.Admitted += cost
	p.Admitted += cost
	p.w.Oracles[t.account].Admit(cost, p.w.now)
}

// talk says what is due.
func (p *Pod) talk() {
	if p.leader == nil {
		return
	}
	if b, ok := p.sleeper.Beat(p.time()); ok {
		p.send(p.leader, b)
	}
	for _, t := range p.tills {
		if c, ok := t.holder.Claim(p.time()); ok {
			p.send(p.leader, claim{t.account, c})
		}
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
			var last drained
			for _, t := range p.tills {
				last.claims = append(last.claims, t.holder.Final(p.time()))
			}
			p.send(p.leader, last)
			p.Kill(proof)
		})
	})
}

// Cut cuts the links between the pod and every leader, one way or both.
func (p *Pod) Cut(deaf, mute bool) { p.deaf, p.mute = deaf, mute }

// Freeze stops the process, not its clock.
func (p *Pod) Freeze(dt int64) { p.frozen = max(p.frozen, p.w.now+dt) }
