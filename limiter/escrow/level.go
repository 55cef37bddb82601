// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Level returns the water level of a split: the largest whole number for which sum(min(wants[i], level)) <= avail. Where
// avail covers everything it returns the largest want. What wants are not above the level are met whole and all others
// get the level, which is max-min fair. wants must not be negative.
//
// It needs no sorting: every pass settles the wants below the mean of what is left and raises the level, so it ends
// after a few (as many as there are magnitudes among the wants).
func Level(wants []int64, avail int64) int64 {
	var sum, most int64
	for _, w := range wants {
		sum += w
		most = max(most, w)
	}
	if sum <= avail {
		return most
	}
	level := max(avail, 0) / int64(len(wants))
	for {
		var settled, open int64
		for _, w := range wants {
			above := (level - w) >> 63 // -1 or 0: no branch to mispredict
			settled += w &^ above
			open -= above
		}
		next := (avail - settled) / max(open, 1)
		if next <= level {
			return level
		}
		level = next
	}
}
