// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/limiter/escrow"
)

// Recorder is told what was decided. It is called inside the decision and may be slow only in tests.
type Recorder interface {
	Decision(now int64, limit string, key KeyHash, cost uint64, admitted bool)
	Share(now int64, limit string, units uint64)
}

// Options configure an Engine. The zero value is useful.
type Options struct {
	// Keys is for how many keys that are not full each limit with a key has memory (18 bytes each); DefaultKeys when 0.
	// Beyond it keys share buckets, on the strict side.
	Keys int
	// Hold is how long a request may wait for tokens that are on their way; DefaultHold when 0, not at all below 0.
	Hold time.Duration
	// Recorder may be nil.
	Recorder Recorder
}

// DefaultKeys is 1.2 MB for each limit with a key, of which only what is used becomes resident.
const DefaultKeys = 1 << 16

// Engine decides requests by the assignment in force. All methods may be called concurrently.
type Engine struct {
	// Immutable after New.
	options Options
	seed    maphash.Seed

	delays delays // has a lock of its own

	table   atomic.Pointer[table] // nil before the first assignment and after Stop
	changed atomic.Int64          // when the numbers last changed; set before they do
	calls   chan struct{}         // a Turn is due
	speak   chan struct{}         // a Report is due
	linked  atomic.Bool           // a leader hears

	mu      sync.Mutex     // serialises changes of table
	stopped bool           // guarded by mu
	last    *table         // guarded by mu: the table in force, or the one that was when Stop came
	welcome escrow.Welcome // guarded by mu
}

// New returns an engine that has nothing to enforce yet and therefore admits nothing.
func New(o Options) *Engine {
	if o.Keys == 0 {
		o.Keys = DefaultKeys
	}
	if o.Hold == 0 {
		o.Hold = DefaultHold
	}
	return &Engine{options: o, seed: maphash.MakeSeed(), calls: make(chan struct{}, 1), speak: make(chan struct{}, 1)}
}

// ErrStopped is returned by Apply after Stop.
var ErrStopped = errors.New("the engine has stopped")

// Apply puts a snapshot and the pod's shares of its limits in force at an instant, in one step, or changes nothing and
// returns why it cannot.
//
// A limit that was in force keeps its balances: they are clamped to smaller numbers, and larger ones mint nothing. A
// share of a limit of which the pod had none starts empty, but for what the assignment fills it with.
//
// When Apply has returned, no decision is made by older numbers in any goroutine, and none that was made by them is still
// to come: Decide looks at the table again after it has taken tokens.
func (e *Engine) Apply(s *quotav1.Snapshot, shares []*quotav1.Share, now limiter.Time) error {
	next, err := compile(s, e.seed)
	if err != nil {
		return err
	}
	fills, err := next.deal(shares)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	before := e.table.Load()
	for _, l := range next.limits {
		if err := e.open(l, before.limit(l.id), fills[l.id], now); err != nil {
			return fmt.Errorf("%w: limit %q: %w", errSnapshot, l.id, err)
		}
	}
	// Nothing can fail any more.
	e.changed.Store(max(e.changed.Load(), int64(now)))
	for _, l := range next.limits {
		if l.lent {
			next.lent = append(next.lent, l.account.lent)
		}
		old := before.limit(l.id)
		if old != nil && old.account == l.account {
			if err := l.account.reconfigure(now, l.shareRate, l.shareBurst); err != nil {
				panic("admission: a part of a valid burst is no valid burst: " + err.Error())
			}
		}
	}
	e.table.Store(next)
	e.last = next
	e.recordShares(before, next, now)
	e.dismiss(before, now)
	signal(e.calls)
	return nil
}

// dismiss lets the requests that wait by an older table go on by the one in force, or denies them where that is not possible:
// no decision is made by the older one any more.
func (e *Engine) dismiss(before *table, now limiter.Time) {
	if before == nil {
		return
	}
	for _, a := range before.lent {
		a.mu.Lock()
		var verdicts []verdict
		var elsewhere []*Held
		a.all(func(t *tab) {
			out, moved := t.serve(now, verdicts)
			verdicts, elsewhere = out, append(elsewhere, moved...)
		})
		a.mu.Unlock()
		e.deliver(verdicts, now)
		e.move(elsewhere, now)
	}
}

// open gives a limit its account: the one it had, or a new one.
func (e *Engine) open(l, old *Limit, fill uint64, now limiter.Time) (err error) {
	if old != nil && old.sameAccounts(l) && (l.lent || old.units > 0 || fill == 0) {
		l.account = old.account
		if l.lent {
			soon, _ := e.patience(l)
			l.account.lent.patience(soon)
		}
		return nil
	}
	level := l.burst.Part(fill, quotav1.Whole) // the limiter cuts it to the burst of the share
	if old != nil && old.units > 0 {
		level = 0 // the pod had a share, by other keys
	}
	l.account = &account{counters: newCounters()}
	if l.delay > 0 && !l.lent && !l.concurrency {
		l.account.queueing.delays = &e.delays
	}
	if old != nil {
		l.account.counters = old.account.counters
	}
	if l.concurrency {
		l.account.flight = newFlight(l.shareBurst.Whole())
		return nil
	}
	switch {
	case l.lent:
		l.account.lent, err = e.newAdaptive(l.id, len(l.key) > 0, now)
		if err == nil {
			l.account.lent.adopt(e.welcome, now)
			soon, _ := e.patience(l)
			l.account.lent.patience(soon)
		}
	case len(l.key) == 0:
		l.account.bucket, err = limiter.NewTokenBucketAt(now, l.shareRate, l.shareBurst, level)
	default:
		l.account.keyed, err = limiter.NewKeyedAt(now, l.shareRate, l.shareBurst, level, e.options.Keys)
	}
	return err
}

// patience is how long a request may wait for a limit's tokens: where none is left, and in any case.
func (e *Engine) patience(l *Limit) (soon, until time.Duration) {
	if !l.lent {
		return l.delay, l.delay
	}
	until = e.options.Hold
	if l.hold >= 0 {
		until = l.hold
	}
	return max(min(until, scarce), l.delay), max(until, l.delay)
}

// Stop ends all admission: from its return on every request is Unavailable. It comes before the final report.
func (e *Engine) Stop(now limiter.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	before := e.table.Swap(nil)
	e.recordShares(before, nil, now)
	e.dismiss(before, now)
	_, verdicts, _ := e.delays.serve(e, now)
	e.deliver(verdicts, now)
}

func (e *Engine) recordShares(before, after *table, now limiter.Time) {
	if e.options.Recorder == nil {
		return
	}
	if after != nil {
		for _, l := range after.limits {
			if old := before.limit(l.id); old == nil || old.units != l.units {
				e.options.Recorder.Share(int64(now), l.id, l.units)
			}
		}
	}
	if before != nil {
		for _, l := range before.limits {
			if after.limit(l.id) == nil {
				e.options.Recorder.Share(int64(now), l.id, 0)
			}
		}
	}
}

// limit returns a limit of the table by its id, nil when there is none. The table may be nil.
func (t *table) limit(id string) *Limit {
	if t == nil {
		return nil
	}
	return t.byID[id]
}
