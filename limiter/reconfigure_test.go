// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "testing"

// change is a reconfiguration or, if rate is zero, a look at what is there.
type change struct {
	at     Time
	rate   Rate
	burst  Tokens
	growth Growth
	want   Tokens // there afterwards
}

func TestReconfiguringKeepsWhatIsHeldAndMintsNothing(t *testing.T) {
	one := PerSecond(1)
	traces := map[string]struct {
		level Tokens
		spend uint64
		steps []change
	}{
		"a larger burst adds room that is filled as it is earned": {Full, 0, []change{
			{0, one, 30 * Token, AsEarned, 10 * Token}, {5 * second, Rate{}, 0, 0, 15 * Token}, {60 * second, Rate{}, 0, 0, 30 * Token},
		}},
		"a larger burst is full at once where that is asked for": {Full, 0, []change{
			{0, one, 30 * Token, AtOnce, 30 * Token},
		}},
		"but not for a bucket that was spent from a moment ago": {Full, 4, []change{
			{0, one, 30 * Token, AtOnce, 6 * Token}, {5 * second, Rate{}, 0, 0, 11 * Token},
		}},
		"a smaller burst clamps, for good": {Full, 0, []change{
			{0, one, 3 * Token, AsEarned, 3 * Token}, {0, one, 10 * Token, AsEarned, 3 * Token}, {2 * second, Rate{}, 0, 0, 5 * Token},
		}},
		"also if it grows back at once": {Full, 0, []change{
			{0, one, 3 * Token, AsEarned, 3 * Token}, {0, one, 10 * Token, AtOnce, 3 * Token},
		}},
		"a bucket that was created empty stays so when its burst grows": {0, 0, []change{
			{0, one, 20 * Token, AtOnce, 0}, {0, one, 30 * Token, AsEarned, 0}, {4 * second, Rate{}, 0, 0, 4 * Token},
		}},
		"a new rate counts from its instant": {0, 0, []change{
			{2 * second, PerSecond(3), 10 * Token, AsEarned, 2 * Token}, {3 * second, Rate{}, 0, 0, 5 * Token},
		}},
		"an instant before the last change counts as that": {0, 0, []change{
			{4 * second, PerSecond(2), 10 * Token, AsEarned, 4 * Token}, {1 * second, PerSecond(3), 10 * Token, AsEarned, 4 * Token},
			{5 * second, Rate{}, 0, 0, 7 * Token},
		}},
		"no burst at all grants nothing until there is one again": {Full, 0, []change{
			{0, one, 0, AsEarned, 0}, {60 * second, one, 10 * Token, AsEarned, 0}, {61 * second, Rate{}, 0, 0, Token},
		}},
	}
	for name, tc := range traces {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t, 0, one, 10*Token, tc.level)
			k := newKeyed(t, 0, one, 10*Token, tc.level, 100)
			b.AllowAt(0, tc.spend)
			k.TakeHashAt(0, 7, tc.spend)
			for i, s := range tc.steps {
				if s.rate != (Rate{}) {
					if err := b.ReconfigureAt(s.at, s.rate, s.burst, s.growth); err != nil {
						t.Fatal(err)
					}
					if err := k.ReconfigureAt(s.at, s.rate, s.burst, s.growth); err != nil {
						t.Fatal(err)
					}
				}
				if got := b.PeekAt(s.at, 0).Remaining; got != s.want {
					t.Errorf("step %d: the bucket has %v, want %v", i, got, s.want)
				}
				if got := k.PeekHashAt(s.at, 7, 0).Remaining; got != s.want {
					t.Errorf("step %d: the key has %v, want %v", i, got, s.want)
				}
			}
		})
	}
}
