// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"math"
	"time"
)

var (
	// ErrBurst is returned for a burst below zero or above MaxBurst.
	ErrBurst = errors.New("limiter: burst out of range")

	// ErrLimit is returned by Wait for a cost that the limiter can never grant: it is above the burst, or nothing is
	// earned.
	ErrLimit = errors.New("limiter: cost can never be granted")

	// ErrFull is returned by Wait of a queue that has no room at the moment.
	ErrFull = errors.New("limiter: queue is full")

	// ErrWindow is returned for a window that is not positive, or a limit that a window cannot count to.
	ErrWindow = errors.New("limiter: window out of range")

	// ErrKeys is returned for a keyed store without room for keys.
	ErrKeys = errors.New("limiter: number of keys out of range")
)

// Never is the RetryAfter of a cost that waiting does not help: it is above the burst, or nothing is earned.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one request.
type Decision struct {
	// Allowed tells whether the cost was taken. If not, nothing was taken.
	Allowed bool

	// Remaining is what is left to spend right after the decision, rounded down to a millionth of a token.
	Remaining Tokens

	// RetryAfter is how long until the same cost would be granted if nobody else took anything: 0 if it was allowed,
	// Never if it cannot be.
	RetryAfter time.Duration

	// Limit is the most that can ever remain: the burst, or the limit of a window.
	Limit Tokens
}
