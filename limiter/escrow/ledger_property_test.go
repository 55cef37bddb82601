// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/limiter/escrow"
)

// pod is what really happens in a process: the share it acts on, and what is under way to and from it.
type pod struct {
	id        string
	share     uint64
	fill      uint64
	connected bool
	alive     bool
	inbox     []message // assignments of this stream
	acks      []uint64  // acknowledgements under way
}

type message struct{ seq, units, fill uint64 }

// world drives a ledger and the pods behind it through lost, late and repeated messages.
type world struct {
	ledger *escrow.Ledger
	pods   []*pod
	seq    uint64
	now    int64
}

func (w *world) plan() {
	w.seq++
	for _, g := range w.ledger.Plan(w.seq, w.now) {
		for _, p := range w.pods {
			if p.id == g.Holder && p.connected {
				p.inbox = append(p.inbox, message{w.seq, g.Units, g.Fill})
			}
		}
	}
}

func (w *world) deliver(p *pod, n int) {
	for ; n > 0 && len(p.inbox) > 0; n-- {
		m := p.inbox[0]
		p.inbox = p.inbox[1:]
		if p.share == 0 {
			p.fill += m.fill
		}
		p.share = m.units
		p.acks = append(p.acks, m.seq)
	}
}

func (w *world) connect(p *pod) {
	p.connected, p.inbox, p.acks = true, nil, nil
	w.ledger.Join(p.id, p.share, w.now)
	w.ledger.Register(p.id, p.share, w.now)
	w.ledger.SetWant(p.id, escrow.WantFull)
}

func (w *world) check(t *rapid.T) {
	var sum, fills uint64
	for _, p := range w.pods {
		fills += p.fill
		if p.alive {
			sum += p.share
		}
	}
	if sum > whole {
		t.Fatalf("pods act on %d of %d", sum, whole)
	}
	if fills > whole {
		t.Fatalf("first fills add up to %d of %d", fills, whole)
	}
}

func TestPodsNeverActOnMoreThanTheWholeWhateverTheNetworkDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{ledger: escrow.New(whole, whole, nil)}
		w.ledger.SetDelay(rapid.Int64Range(0, 50).Draw(t, "delay"))
		pick := func(t *rapid.T) *pod {
			if len(w.pods) == 0 {
				t.Skip("no pods yet")
			}
			return rapid.SampledFrom(w.pods).Draw(t, "pod")
		}
		t.Repeat(map[string]func(*rapid.T){
			"start a pod": func(*rapid.T) {
				if len(w.pods) < 12 {
					p := &pod{id: fmt.Sprintf("p%02d", len(w.pods)), alive: true}
					w.pods = append(w.pods, p)
					w.connect(p)
				}
			},
			"deliver assignments": func(t *rapid.T) {
				if p := pick(t); p.alive {
					w.deliver(p, rapid.IntRange(1, 3).Draw(t, "n"))
				}
			},
			"deliver an acknowledgement, perhaps twice": func(t *rapid.T) {
				p := pick(t)
				if len(p.acks) == 0 || !p.connected {
					return
				}
				for range rapid.IntRange(1, 2).Draw(t, "times") {
					w.ledger.Ack(p.id, p.acks[0], w.now)
				}
				p.acks = p.acks[1:]
			},
			"cut a stream": func(t *rapid.T) {
				p := pick(t)
				p.connected, p.inbox, p.acks = false, nil, nil
				w.ledger.Disconnect(p.id)
			},
			"reconnect": func(t *rapid.T) {
				if p := pick(t); p.alive && !p.connected {
					w.connect(p)
				}
			},
			"kill a pod without a word": func(t *rapid.T) {
				p := pick(t)
				p.alive, p.connected, p.inbox = false, false, nil
				w.ledger.Disconnect(p.id)
			},
			"prove a dead pod gone": func(t *rapid.T) {
				if p := pick(t); !p.alive {
					w.ledger.Gone(p.id, w.now)
					w.ledger.Register(p.id, 0, w.now)
				}
			},
			"drain or wake a pod": func(t *rapid.T) {
				w.ledger.SetWant(pick(t).id, rapid.SampledFrom([]escrow.Want{escrow.WantNone, escrow.WantKeep, escrow.WantFull}).Draw(t, "want"))
			},
			"fail over to a new leader": func(*rapid.T) {
				var alive []string
				for _, p := range w.pods {
					p.connected, p.inbox, p.acks = false, nil, nil
					if p.alive {
						alive = append(alive, p.id)
					}
				}
				w.ledger = escrow.New(whole, 0, alive)
			},
			"let time pass": func(t *rapid.T) { w.now += rapid.Int64Range(1, 60).Draw(t, "ns") },
			"": func(t *rapid.T) {
				w.plan()
				w.check(t)
			},
		})

		// When the network heals, every pod that lives ends with its equal share.
		for _, p := range w.pods {
			if p.alive {
				w.connect(p)
			} else {
				w.ledger.Gone(p.id, w.now)
				w.ledger.Register(p.id, 0, w.now)
			}
		}
		n := uint64(w.ledger.N())
		for range 20 {
			w.now += 100
			w.plan()
			for _, p := range w.pods {
				w.deliver(p, len(p.inbox))
				for _, a := range p.acks {
					w.ledger.Ack(p.id, a, w.now)
				}
				p.acks = nil
			}
			w.check(t)
		}
		for _, p := range w.pods {
			if p.alive && p.share != whole/n {
				t.Fatalf("pod %s ends with %d of %d units among %d pods, not with an equal share", p.id, p.share, whole, n)
			}
		}
	})
}
