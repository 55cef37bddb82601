// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package escrow decides who holds which part of one limit, so that the parts never add up to more than the limit.
//
// A Ledger belongs to the one process that may move capacity. It deals in units of a whole (a fraction of the limit's rate
// and burst) and knows, for every holder, the largest share that this holder may still believe in: what it acknowledged
// last, or anything larger that has been sent to it since. Capacity moves by shrink, acknowledge, grow:
//
//	sum of believed + reserved for the unregistered + cooling + free = whole        (always, and never above)
//
//	holder A  1/1 ──shrink 1/2──▶ ack ──┐
//	                                    ├─▶ cooling ──at once──▶ newborn B 1/2 (starts empty)
//	holder C leaves, proven gone ───────┘       └──after the delay──▶ free ──▶ existing holders grow
//
// Everything here is a pure state machine: messages in, grants out, time a parameter in nanoseconds of one monotonic clock.
// Nothing is safe for concurrent use; the owner serialises the calls.
package escrow
