// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// LentState is what a pod has to do with the leader about one limit.
type LentState struct {
	// Isolated says that the pod lives on its own share, since no leader is heard, or since it has use for all of it.
	Isolated bool `json:"isolated"`
	// Borrowing counts the keys that borrow, Outstanding what is borrowed and not spent, of all of them.
	Borrowing   int   `json:"borrowing"`
	Outstanding int64 `json:"outstanding"`
	// Turned counts how often a key ran short and was not let borrow, since too many do.
	Turned uint64 `json:"turned"`
}

// state adds what is known of a limit whose tokens are lent.
func (a *adaptive) state(s *LimitState, l *Limit, now limiter.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &LentState{Isolated: a.sleeper.Isolated(int64(now)), Turned: a.turned.Load()}
	s.Lent, s.ShareUnits = out, a.sleeper.Units()
	s.ShareFraction = float64(s.ShareUnits) / float64(quotav1.Whole)
	parts, burst := a.sleeper.Share(int64(now))
	s.RatePerSecond, s.ShareBurst = l.rate.Part(parts, quotav1.Whole*1000).PerSecond(), number(limiter.Tokens(burst))
	atHand := int64(0)
	a.all(func(t *tab) {
		out.Borrowing++
		out.Outstanding += t.holder.Outstanding()
		atHand += t.holder.Available(int64(now))
	})
	if a.keys != nil {
		keys := a.keys.LenAt(now)
		s.Keys, s.SharedKeys = &keys, a.keys.Strict()
		return
	}
	balance := float64(atHand)
	s.Balance = &balance
}
