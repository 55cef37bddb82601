// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/limiter/escrow"
)

// adaptive is this process's side of a limit whose tokens are lent to the pods where the demand is. A request that finds a
// token at hand takes it from a purse, or from the key's part of the share, without a lock. Everything else is behind mu.
//
// A limit without a key has one tab. One with a key serves each key from the part of the share that is awake, which costs
// no word to anybody; a key that runs short gets a tab of its own, for as long as it borrows.
type adaptive struct {
	id   string
	keys *limiter.Keyed // each key's part of the share; nil without a key
	hold time.Duration  // how long a request may wait
	call func()         // asks for a Turn soon
	// table is what is in force: nobody is admitted by another.
	table func() *table
	// linked says that there is a stream to a leader, slow as it may be.
	linked func() bool

	one    *tab                            // nil with a key
	tabs   atomic.Pointer[map[uint64]*tab] // by the hash of the key; replaced, never changed
	called atomic.Bool
	stamp  atomic.Int64 // newest instant at which tokens came to hand
	held   atomic.Uint64
	turned atomic.Uint64 // keys that ran short and could not get a tab

	mu      sync.Mutex
	sleeper *escrow.Sleeper
	said    bool // Hello, on this stream
	opening opening
}

// tab is one account: what is lent to it, and who waits for that.
type tab struct {
	of     *adaptive
	hash   uint64
	key    KeyHash
	holder *escrow.Holder // guarded by of.mu, but for its purse

	queue   []*Held // guarded by of.mu, as is cost, of all that are in it
	cost    int64
	scarce  limiter.Time // when the leader said last that none is left; guarded by of.mu
	waiting atomic.Bool  // somebody is in the queue: who comes now is not served before
}

const (
	// sleep is D: for how long a promise to leave a share alone holds. The operator counts with the same.
	sleep = int64(escrow.Sleep)
	// maxTabs bounds the keys of one limit that borrow at a time.
	maxTabs = 512
)

func (e *Engine) newAdaptive(id string, hasKey bool, now limiter.Time) (*adaptive, error) {
	a := &adaptive{id: id, hold: e.options.Hold, call: func() { signal(e.calls) }, table: e.table.Load, linked: e.linked.Load, sleeper: escrow.NewSleeper(sleep, int64(now))}
	if !hasKey {
		a.one = &tab{of: a, holder: a.sleeper.Account(int64(now))}
		return a, nil
	}
	var err error
	a.keys, err = limiter.NewKeyedAt(now, limiter.Rate{}, 0, 0, e.options.Keys)
	a.tabs.Store(&map[uint64]*tab{})
	return a, err
}

// alone reports whether nobody lends: the pod is isolated, and not only from a leader that is late. The lock is held.
func (a *adaptive) alone(now limiter.Time) bool { return a.sleeper.Alone(int64(now)) && !a.linked() }

// patience changes how long a request may wait.
func (a *adaptive) patience(hold time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = hold
}

// find returns the tab of a key, nil where it has none.
func (a *adaptive) find(hash uint64) *tab {
	if a.one != nil {
		return a.one
	}
	return (*a.tabs.Load())[hash]
}

// all calls f for every tab.
func (a *adaptive) all(f func(*tab)) {
	if a.one != nil {
		f(a.one)
		return
	}
	for _, t := range *a.tabs.Load() {
		f(t)
	}
}

// take spends a cost that is at hand, or nothing.
func (a *adaptive) take(now limiter.Time, m *match) limiter.Decision {
	if a.keys != nil {
		if d := a.keys.TakeHashAt(now, m.hash, m.cost); d.Allowed {
			d.Limit = m.limit.burst
			return d
		}
	}
	t := a.find(m.hash)
	if t == nil || m.cost > escrow.MaxTake || t.waiting.Load() && !m.first {
		return a.short(m)
	}
	p := t.holder.Purse()
	if !p.Take(int64(m.cost)) {
		return a.short(m)
	}
	left := p.Left()
	if p.Low() {
		a.nudge()
	}
	return limiter.Decision{Allowed: true, Limit: m.limit.burst, Remaining: limiter.Tokens(left) * limiter.Token}
}

// short is the answer without tokens at hand. All that is known of the others is that together they earn the limit's rate.
func (a *adaptive) short(m *match) limiter.Decision {
	cost := limiter.Tokens(m.cost) * limiter.Token
	if cost > m.limit.burst {
		return limiter.Decision{Limit: m.limit.burst, RetryAfter: limiter.Never}
	}
	return limiter.Decision{Limit: m.limit.burst, RetryAfter: m.limit.rate.Duration(cost)}
}

// reserve sets a cost apart that is at hand. Where it is in the key's share, it is the charge that is returned that takes it.
func (a *adaptive) reserve(now limiter.Time, m *match) (d limiter.Decision, from *tab, charge limiter.Charge) {
	if a.keys != nil {
		if d = a.keys.PeekHashAt(now, m.hash, m.cost); d.Allowed {
			return d, nil, a.keys.Charge(m.hash, m.cost)
		}
	}
	t := a.find(m.hash)
	if t == nil || m.cost > escrow.MaxTake || t.waiting.Load() && !m.first || !t.holder.Purse().Reserve(int64(m.cost)) {
		return a.short(m), nil, charge
	}
	left := limiter.Tokens(t.holder.Purse().Left()) * limiter.Token
	return limiter.Decision{Allowed: true, Limit: m.limit.burst, Remaining: left}, t, charge
}

func (t *tab) commit(cost uint64) {
	p := t.holder.Purse()
	p.Commit(int64(cost))
	if p.Low() {
		t.of.nudge()
	}
}

func (t *tab) cancel(cost uint64) {
	t.holder.Purse().Cancel(int64(cost))
	t.of.nudge() // somebody may have found it missing, and wait
}

// settle corrects what was taken for a request whose true cost is known only afterwards. What came too much goes back as far
// as nobody has been told that it is spent; what came too little is taken as far as it is at hand.
func (a *adaptive) settle(now limiter.Time, hash, taken, actual uint64) {
	t := a.find(hash)
	switch {
	case t == nil || taken == actual:
		return
	case actual > taken:
		t.holder.Purse().TakeUpTo(int64(min(actual-taken, escrow.MaxTake)))
	default:
		a.mu.Lock()
		t.holder.Refund(int64(taken-actual), int64(now))
		a.mu.Unlock()
	}
	a.nudge()
}

// nudge asks for a Turn, once until it comes.
func (a *adaptive) nudge() {
	if !a.called.Load() && a.called.CompareAndSwap(false, true) {
		a.call()
	}
}

// open gives a key that ran short a tab, if there is one to be had. The lock is held.
func (a *adaptive) open(hash uint64, key KeyHash, now limiter.Time) *tab {
	if t := a.find(hash); t != nil {
		return t
	}
	before := *a.tabs.Load()
	if len(before) >= maxTabs || !a.opening.allow(now) {
		a.turned.Add(1)
		return nil
	}
	t := &tab{of: a, hash: hash, key: key, holder: a.sleeper.Loans(int64(now))}
	next := maps.Clone(before)
	next[hash] = t
	a.tabs.Store(&next)
	return t
}

// forget closes tabs in which nothing is left. The lock is held.
func (a *adaptive) forget(done []*tab) {
	if len(done) == 0 {
		return
	}
	next := maps.Clone(*a.tabs.Load())
	for _, t := range done {
		delete(next, t.hash)
		t.holder.Forget()
	}
	a.tabs.Store(&next)
}

// enforce puts in force for the keys what the share is now. It comes before a promise leaves, and before an acknowledgement.
// The lock is held.
func (a *adaptive) enforce(now limiter.Time) {
	if a.keys == nil {
		return
	}
	parts, burst := a.sleeper.Share(int64(now))
	rate := limiter.Rate{}
	if l := a.sleeper.Limit(); parts > 0 {
		whole, err := limiter.NewRate(l.Requests, time.Duration(l.Period))
		if err != nil {
			panic("admission: an order with a rate that is none was taken in: " + err.Error())
		}
		rate = whole.Part(parts, escrow.Whole*1000)
	}
	if old, most := a.keys.Config(); old == rate && int64(most) == burst {
		return
	}
	if err := a.keys.ReconfigureAt(now, rate, limiter.Tokens(burst), limiter.AsEarned); err != nil {
		panic("admission: a part of a valid burst is no valid burst: " + err.Error())
	}
}

// opening bounds how many keys of a limit get a tab: a flood of keys must not reach the mint.
type opening struct {
	left float64
	at   limiter.Time
}

const (
	openPerSecond = 20
	openAtOnce    = 100
)

func (o *opening) allow(now limiter.Time) bool {
	if o.at == 0 {
		o.left, o.at = openAtOnce, now
	}
	if now > o.at {
		o.left = min(openAtOnce, o.left+openPerSecond*now.Sub(o.at).Seconds())
		o.at = now
	}
	if o.left < 1 {
		return false
	}
	o.left--
	return true
}
