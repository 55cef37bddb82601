// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

import "time"

const (
	// memory is the time constant by which demand is forgotten; beyond eight of them nothing is left.
	memory = 50 * int64(time.Millisecond)
	// horizon is for how long a process borrows ahead.
	horizon = 25 * int64(time.Millisecond)
)

// demand is what has been asked for lately, forgotten by a half in some 35 ms. The law does not rest on it.
type demand struct {
	micro int64
	at    int64
}

func (d *demand) add(tokens, now int64) {
	d.fade(now)
	d.micro = min(d.micro+tokens*Micro, 1<<52)
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

// ahead is what a horizon of such demand takes, in tokens.
func (d *demand) ahead() int64 { return d.micro / (memory / horizon) / Micro }
