// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "sync/atomic"

// Purse holds the whole tokens of one account that are at hand in a process, and is the one part of this package that
// many goroutines may use at once: a token is taken by one compare-and-swap, without a lock, a clock or an allocation.
//
// It belongs to the Holder that made it. What lies in it is the Holder's, lent or earned; the Holder puts more in, takes
// some back, and learns from what is missing what has been spent. So whatever a Holder counts as returned or gives up has
// been taken out first, and nobody can spend it any more.
type Purse struct {
	_    [64]byte
	word atomic.Uint64 // tokens set apart for decisions under way << 32 | tokens free to be taken
	low  atomic.Int64
	_    [48]byte
}

const purseBits = 32

// Take takes n tokens, or none; they are spent. n is at most 2^31.
func (p *Purse) Take(n int64) bool { return p.move(n, 0) }

// Reserve sets n tokens apart, or none, until Commit or Cancel is called with the same n.
func (p *Purse) Reserve(n int64) bool { return p.move(n, uint64(n)<<purseBits) }

// TakeUpTo takes n tokens, or as many as there are.
func (p *Purse) TakeUpTo(n int64) { p.withdraw(n) }

func (p *Purse) move(n int64, apart uint64) bool {
	for {
		w := p.word.Load()
		if free(w) < n || n < 0 {
			return false
		}
		if p.word.CompareAndSwap(w, w-uint64(n)+apart) {
			return true
		}
	}
}

// Commit spends n tokens that were set apart.
func (p *Purse) Commit(n int64) { p.word.Add(-(uint64(n) << purseBits)) }

// Cancel gives back n tokens that were set apart.
func (p *Purse) Cancel(n int64) { p.word.Add(uint64(n) - uint64(n)<<purseBits) }

// Left is how many tokens are free to be taken.
func (p *Purse) Left() int64 { return free(p.word.Load()) }

// Low reports whether the Holder wants to be looked after: less is left than it needs until it is looked after anyway.
func (p *Purse) Low() bool { return free(p.word.Load()) <= p.low.Load() }

func free(w uint64) int64 { return int64(w & (1<<purseBits - 1)) }

// held is how many tokens lie in it, those set apart among them.
func (p *Purse) held() int64 {
	w := p.word.Load()
	return free(w) + int64(w>>purseBits)
}

func (p *Purse) put(n int64) { p.word.Add(uint64(n)) }

// withdraw takes back up to n tokens and returns how many.
func (p *Purse) withdraw(n int64) int64 {
	for n > 0 {
		w := p.word.Load()
		k := min(n, free(w))
		if p.word.CompareAndSwap(w, w-uint64(k)) {
			return k
		}
	}
	return 0
}
