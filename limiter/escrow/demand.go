// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "time"

const (
	// memory is the time constant by which demand is forgotten; beyond eight of them nothing is left.
	memory = 50 * int64(time.Millisecond)
	// horizon is for how long a process borrows ahead.
	horizon = 55 * int64(time.Millisecond)
	// patience is how many usual gaps without a request mean that demand has ended.
	patience = 8
)

// demand is what has been asked for lately, forgotten by a half in some 35 ms. The law does not rest on it.
type demand struct {
	micro int64
	at    int64
	last  int64 // when the newest request came
}

func (d *demand) add(tokens, now int64) {
	d.fade(now)
	d.micro = min(d.micro+tokens*Micro, 1<<52)
	d.last = now
}

func (d *demand) fade(now int64) {
	dt := now - d.at
	if dt <= 0 {
		return
	}
	d.at = now
	if dt >= 8*memory {
		d.micro = 0
		return
	}
	for dt > 0 {
		step := min(dt, memory/4)
		d.micro -= int64(mulDiv(uint64(d.micro), uint64(step), uint64(memory)))
		dt -= step
	}
}

// over reports whether demand has ended: nothing has come for eight times the usual gap, which by chance happens once in
// three thousand gaps.
func (d *demand) over(now int64) bool {
	return d.micro == 0 || now-d.last > patience*int64(mulDiv(Micro, uint64(memory), max(uint64(d.micro), Micro)))
}

// ahead is what a horizon of such demand takes, in tokens.
func (d *demand) ahead() int64 {
	return int64(mulDiv(uint64(d.micro), uint64(horizon), uint64(memory))) / Micro
}
