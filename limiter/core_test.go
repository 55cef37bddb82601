// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import "testing"

func TestTheHighestCoreIsReadFromTheKernelsList(t *testing.T) {
	for list, want := range map[string]int{
		"0\n": 0, "0-1\n": 1, "0-3,8-11\n": 11, "0,2,5": 5,
		"": -1, "\n": -1, "0-": -1, "all": -1, "0-99999999": -1,
	} {
		if got := highest(list); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

func TestACreditsCoreIsAStripeOfItsOwnOrNotUsed(t *testing.T) {
	for processors := range maxStripes + 2 {
		b, err := newStriped(0, PerSecond(1), 1000*Token, Full, processors)
		if err != nil {
			t.Fatal(err)
		}
		if b.byCore && (cores() == 0 || cores() > len(b.stripes)) {
			t.Errorf("%d stripes are shared by %d cores", len(b.stripes), cores())
		}
	}
	if n := cores(); n > 0 && core() >= n {
		t.Errorf("core %d of %d", core(), n)
	}
}
