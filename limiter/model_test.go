// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"math/big"
	"time"

	"pgregory.net/rapid"
)

// ideal is the token bucket of real numbers, counting in millionths of a token. It is what every limiter here is
// measured against.
type ideal struct {
	at          Time
	rate        *big.Rat // millionths per nanosecond
	burst       *big.Rat
	earned      *big.Rat
	mark, floor *big.Rat

	// slack is how far an implementation may be behind, in millionths: one for rounding, and for each reconfiguration
	// what the new rate earns in a nanosecond.
	slack *big.Rat
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func perNano(r Rate) *big.Rat {
	n, d := r.Fraction()
	if n == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Mul(new(big.Rat).SetFrac64(int64(n), int64(d)), rat(int64(Token)))
}

func newIdeal(at Time, r Rate, burst, level Tokens) *ideal {
	m := &ideal{at: at, rate: perNano(r), burst: rat(int64(burst)), earned: new(big.Rat), slack: rat(1)}
	m.floor = rat(-int64(level))
	if level >= burst {
		m.floor = rat(-int64(MaxBurst)) // full: as if it had rested for ever
	}
	m.mark = m.floor
	return m
}

func greater(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func (m *ideal) advance(t Time) {
	if t > m.at {
		d := new(big.Rat).SetInt(new(big.Int).Sub(big.NewInt(int64(t)), big.NewInt(int64(m.at))))
		m.earned = new(big.Rat).Add(m.earned, d.Mul(d, m.rate))
		m.at = t
	}
}

func (m *ideal) balance(t Time) *big.Rat {
	m.advance(t)
	mark := greater(m.mark, greater(m.floor, new(big.Rat).Sub(m.earned, m.burst)))
	return new(big.Rat).Sub(m.earned, mark)
}

func (m *ideal) take(t Time, cost uint64) {
	left := new(big.Rat).Sub(m.balance(t), rat(int64(price(cost))))
	m.mark = new(big.Rat).Sub(m.earned, left)
}

func (m *ideal) reconfigure(t Time, r Rate, burst Tokens, g Growth) {
	m.advance(t)
	b := rat(int64(burst))
	if c := b.Cmp(m.burst); c < 0 || c > 0 && g == AsEarned {
		keep := m.burst
		if c < 0 {
			keep = b
		}
		m.floor = greater(m.floor, new(big.Rat).Sub(m.earned, keep))
	}
	m.rate, m.burst = perNano(r), b
	m.slack = new(big.Rat).Add(m.slack, m.rate)
}

// agree fails the test unless a decision on a limiter is right by the ideal: never granted a millionth beyond it, never
// refused further behind it than the slack, and never telling a millionth more than is there. It then records the
// decision.
func (m *ideal) agree(t *rapid.T, at Time, cost uint64, d Decision) {
	have, want := m.balance(at), rat(int64(price(cost)))
	switch {
	case d.Allowed && new(big.Rat).Add(have, rat(1)).Cmp(want) <= 0:
		t.Fatalf("at %d granted %d with %s there", at, cost, have.FloatString(3))
	case !d.Allowed && have.Cmp(new(big.Rat).Add(want, m.slack)) >= 0:
		t.Fatalf("at %d refused %d with %s there, slack %s", at, cost, have.FloatString(3), m.slack.FloatString(3))
	}
	if d.Allowed && cost > 0 {
		m.take(at, cost)
		have = m.balance(at)
	}
	left := rat(int64(d.Remaining))
	if left.Sign() > 0 && left.Cmp(new(big.Rat).Add(have, rat(1))) >= 0 {
		t.Fatalf("at %d told %v remaining with %s there", at, d.Remaining, have.FloatString(3))
	}
	if new(big.Rat).Add(left, m.slack).Cmp(have) < 0 {
		t.Fatalf("at %d told %v remaining with %s there, slack %s", at, d.Remaining, have.FloatString(3), m.slack.FloatString(3))
	}
}

// drawRate draws rates from none to MaxRate, tiny and huge, round and crooked, and parts of them.
func drawRate(t *rapid.T) Rate {
	period := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Second, time.Minute, time.Hour, 365 * 24 * time.Hour}),
		rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "ns")) }),
	).Draw(t, "period")
	most := new(big.Int).Mul(big.NewInt(MaxRate), big.NewInt(int64(period)))
	most.Div(most, big.NewInt(int64(time.Second)))
	top := uint64(1 << 43)
	if most.IsUint64() {
		top = min(top, most.Uint64())
	}
	tokens := rapid.OneOf(rapid.Uint64Range(0, min(top, 1000)), rapid.Uint64Range(0, top)).Draw(t, "tokens")
	r, err := NewRate(tokens, period)
	if err != nil {
		t.Fatalf("%d per %v: %v", tokens, period, err)
	}
	if rapid.Bool().Draw(t, "part") {
		den := rapid.Uint64Range(1, 1<<53).Draw(t, "den")
		r = r.Part(rapid.Uint64Range(0, den).Draw(t, "num"), den)
	}
	return r
}

// drawBurst draws bursts that a rate fills in moments to hours, and any others.
func drawBurst(t *rapid.T) Tokens {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) Tokens { return Tokens(rapid.Int64Range(0, 100).Draw(t, "tokens")) * Token }),
		rapid.Custom(func(t *rapid.T) Tokens { return Tokens(rapid.Int64Range(0, int64(MaxBurst)).Draw(t, "millionths")) }),
	).Draw(t, "burst")
}

// drawCost draws costs around what there is to spend.
func drawCost(t *rapid.T, have Tokens) uint64 {
	whole := have.Whole()
	return rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(whole, whole+1), rapid.Uint64Range(0, whole+2)).Draw(t, "cost")
}

// drawStep draws how much later the next request comes: at once, about when one token or the burst has been earned, or
// any time.
func drawStep(t *rapid.T, r Rate, burst Tokens) time.Duration {
	const most = 100 * 365 * 24 * time.Hour / 64
	around := func(k Tokens) *rapid.Generator[time.Duration] {
		d := min(r.Duration(k), most)
		return rapid.Custom(func(t *rapid.T) time.Duration {
			return max(d+time.Duration(rapid.Int64Range(-3, 3).Draw(t, "around")), 0)
		})
	}
	return rapid.OneOf(
		rapid.Just(time.Duration(0)), around(1), around(Token), around(burst),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "ns"))
		}),
		rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "long")) }),
	).Draw(t, "step")
}
