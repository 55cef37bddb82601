// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// lender is a leader that lends what a test says, and when.
type lender struct {
	t    *testing.T
	e    *Engine
	now  limiter.Time
	born int64
	hold *uint64
	held chan Decision
}

// all is a limit that is lent.
func (l *lender) all(rate uint64) *quotav1.Limit {
	all := limit("all", rate, 5)
	all.Strategy = quotav1.Strategy_ADAPTIVE
	return all
}

// edit puts other limits in force.
func (l *lender) edit(version string, limits ...*quotav1.Limit) {
	l.t.Helper()
	s := snapshot(version, limits...)
	s.Policies[0].MaxHoldNanoseconds = l.hold
	apply(l.t, l.e, l.now, s)
}

// newLender makes one request of a pod that has nothing at hand.
func newLender(t *testing.T, hold *uint64, options Options) (*lender, *Held) {
	t.Helper()
	l := &lender{t: t, e: New(options), now: start, held: make(chan Decision, 1)}
	l.hold = hold
	l.edit("v", l.all(5))
	l.e.Adopt(1, int64(l.now), l.now)
	l.e.Report(l.now)
	l.grant(&quotav1.LimitGrant{Order: &quotav1.Order{
		Sent: int64(l.now), Heard: int64(l.now), Seq: 1, Burst: 5, Rate: &quotav1.Rate{Requests: 5, PeriodNanoseconds: uint64(time.Second)},
	}})
	l.pass(20 * time.Millisecond)
	d, held := l.e.DecideOrHold(request("/"), l.now, func(d Decision) { l.held <- d })
	if held == nil {
		l.held <- d
	}
	for _, c := range l.e.Report(l.now).GetLimits()[0].Claims {
		l.born = c.Born
	}
	return l, held
}

func (l *lender) grant(g *quotav1.LimitGrant) {
	l.t.Helper()
	g.LimitId = "uid/all"
	if err := l.e.Grant(&quotav1.Grant{Epoch: 1, Limits: []*quotav1.LimitGrant{g}}, l.now); err != nil {
		l.t.Fatal(err)
	}
}

// lend lends tokens; none at all says that there are none.
func (l *lender) lend(tokens int64) {
	l.t.Helper()
	l.grant(&quotav1.LimitGrant{Loans: []*quotav1.Loan{{Born: l.born, Granted: tokens, Scarce: tokens == 0}}})
}

func (l *lender) pass(d time.Duration) {
	for until := l.now.Add(d); l.now < until; {
		l.now = l.now.Add(time.Millisecond)
		l.e.Turn(l.now)
	}
}

// answer is "allowed", "denied", "unavailable" or "held".
func (l *lender) answer() string {
	select {
	case d := <-l.held:
		l.held <- d
		switch {
		case d.Allowed:
			return "allowed"
		case d.Unavailable:
			return "unavailable"
		}
		return "denied"
	default:
		return "held"
	}
}

func TestALeaderThatIsLateIsWaitedForAndOneThatIsGoneIsNot(t *testing.T) {
	l, _ := newLender(t, nil, Options{})
	l.pass(1500 * time.Millisecond) // no word has come for longer than a promise lasts
	ask := func() string {
		select {
		case <-l.held:
		default:
		}
		if d, held := l.e.DecideOrHold(request("/"), l.now, func(d Decision) { l.held <- d }); held == nil {
			l.held <- d
		}
		return l.answer()
	}
	if got := ask(); got != "held" {
		t.Errorf("a request is %s while the stream stands", got)
	}
	l.pass(200 * time.Millisecond)
	l.e.Lost()
	if got := ask(); got != "denied" {
		t.Errorf("a request is %s though nobody can lend", got)
	}
}

func TestARequestIsHeldUntilTheLeaderHasAnswered(t *testing.T) {
	ms := func(n int) *uint64 { return new(uint64(n) * uint64(time.Millisecond)) }
	for name, tc := range map[string]struct {
		hold    *uint64
		options Options
		play    func(*lender)
		want    string
	}{
		"a slow leader is waited for":                   {play: func(l *lender) { l.pass(400 * time.Millisecond) }, want: "held"},
		"and serves the request when it answers":        {play: func(l *lender) { l.pass(400 * time.Millisecond); l.lend(1) }, want: "allowed"},
		"but not for ever":                              {play: func(l *lender) { l.pass(510 * time.Millisecond) }, want: "denied"},
		"one that has none ends the wait after 10 ms":   {play: func(l *lender) { l.lend(0); l.pass(12 * time.Millisecond) }, want: "denied"},
		"and not before, since some may be earned":      {play: func(l *lender) { l.lend(0); l.pass(8 * time.Millisecond) }, want: "held"},
		"a policy may say for how long":                 {hold: ms(30), play: func(l *lender) { l.pass(32 * time.Millisecond) }, want: "denied"},
		"and that is for how long it is":                {hold: ms(800), play: func(l *lender) { l.pass(750 * time.Millisecond) }, want: "held"},
		"a policy may say that nothing is held":         {hold: ms(0), play: func(*lender) {}, want: "denied"},
		"a policy that says too much gets what is most": {hold: ms(60_000), play: func(l *lender) { l.pass(1100 * time.Millisecond) }, want: "denied"},
		"an edit of the numbers ends no wait":           {play: func(l *lender) { l.edit("v2", l.all(7)) }, want: "held"},
		"and what is lent after it is spent":            {play: func(l *lender) { l.edit("v2", l.all(7)); l.lend(1) }, want: "allowed"},
		"nor does a limit that comes beside it":         {play: func(l *lender) { l.edit("v2", l.all(5), limit("more", 1, 1)) }, want: "held"},
		"its own limit's end does":                      {play: func(l *lender) { l.edit("v2", limit("more", 1, 1)) }, want: "denied"},
		"and the pod's own end is no denial":            {play: func(l *lender) { l.e.Stop(l.now) }, want: "unavailable"},
		"a door that cannot wait holds nothing":         {options: Options{Hold: -1}, play: func(*lender) {}, want: "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newLender(t, tc.hold, tc.options)
			tc.play(l)
			if got := l.answer(); got != tc.want {
				t.Errorf("the request is %s, not %s", got, tc.want)
			}
		})
	}
}
