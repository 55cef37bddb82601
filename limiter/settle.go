// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

// SettleAt corrects, at t, what was taken for a request whose true cost is known only afterwards, as that of a language
// model's answer. If it cost less than was taken, the difference comes back, as far as the bucket has room. If it cost more,
// the difference is taken now, from tokens that are yet to be earned if need be: the bucket goes into debt, by at most the
// given amount, and grants nothing until it has earned its way out. What would lead deeper than that is let go, and returned.
//
// With a debt of 0, or actual <= taken, the law of TokenBucket holds; a debt of d adds d to it. Settling the same request
// twice corrects twice.
func (b *TokenBucket) SettleAt(t Time, taken, actual uint64, debt Tokens) (excess Tokens) {
	d := difference(taken, actual)
	for try := 0; ; try++ {
		n, l := b.load(t)
		w := b.word.Load()
		if w >= held {
			pause(try)
			continue
		}
		m, left := l.settle(w, d, debt)
		if m == w || b.commit(n, w, m) {
			return left
		}
	}
}

// SettleHashAt is TokenBucket.SettleAt for the bucket of a key.
func (k *Keyed) SettleHashAt(t Time, hash, taken, actual uint64, debt Tokens) (excess Tokens) {
	d, p := difference(taken, actual), k.place(hash)
	for try := 0; ; try++ {
		n, l := k.load(t)
		g, i := k.find(p)
		if g == nil {
			if d.back || d.amount == 0 {
				return 0 // the bucket is full again: nothing can come back
			}
			// A new slot is entered with what there is; the rest is settled in it.
			now := min(d.amount, uint64(l.balance(k.absent(p))))
			e, out := k.enter(n, l, p, max(now, 1), nil)
			switch out {
			case ready:
				e.settle()
				d.amount -= min(d.amount, max(now, 1))
				continue
			case refused:
				return Tokens(d.amount) // a shared bucket without a token: the strict side already
			}
			pause(try)
			continue
		}
		w := g.word[i].Load()
		if w >= held {
			pause(try)
			continue
		}
		m, left := l.settle(w, d, debt)
		if m == w && g.print[i].Load() == p.print || m != w && k.commit(n, g, i, p.print, w, m) {
			return left
		}
	}
}

// correction is an amount to take, or to give back.
type correction struct {
	amount uint64
	back   bool
}

func difference(taken, actual uint64) correction {
	if actual < taken {
		return correction{price(taken) - price(actual), true}
	}
	return correction{price(actual) - price(taken), false}
}

// settle returns the mark after a correction, and what of it led too deep.
func (l level) settle(m uint64, d correction, debt Tokens) (mark uint64, excess Tokens) {
	if d.back {
		// Below the mark of a full bucket there is nothing to gain; the mark never falls below zero.
		return m - min(d.amount, m), 0
	}
	from := max(m, l.full)
	deepest := max(l.earned+uint64(max(debt, 0)), from)
	room := deepest - from
	if d.amount > room {
		return from + room, Tokens(d.amount - room)
	}
	return from + d.amount, 0
}
