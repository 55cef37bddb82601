// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package escrow decides who holds which part of one limit, so that the parts never add up to more than the limit.
//
// # Equal shares
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
// # One bucket, spent where the demand is
//
// A Fleet (one limit) and its Mints (one account each) belong to the leader; a Sleeper (one limit) and its Holders (one
// account each) belong to each pod. The leader earns the limit's rate into a pool, but for what pods may be earning
// themselves, and lends whole tokens of it to the pods that ask:
//
//	leader                                              pod
//	Fleet   ──Order: your share, numbers──────────▶     Sleeper   share sleeps while promises are answered,
//	        ◀─Beat: in force, I sleep for D────────               wakes D after the word that the last one names
//	Mint    ──Loan: granted so far─────────────────▶    Holder    spends shares and loans, waits for nothing
//	        ◀─Claim: spent, returned, wanted so far─              that is there
//
// Two sums hold at every instant, whatever is lost, late or repeated:
//
//	pool + lent and not reported + bursts of the shares <= B         shares hold at most a quarter of B
//	rate of the mint + rates of the shares not proven asleep <= R
//
// What can be spent in an interval was there at its start (at most B) or was earned in it (at most R, by clocks that are
// off by at most one in a thousand): so the pods together are one token bucket, on the safe side. Loans are counted and
// never timed; every counter is cumulative and never decreases. Whole tokens are lent and rates are not moved about,
// since splitting a bucket by rate always makes requests wait for longer than one bucket would (Guerin, arXiv
// 1909.08969); a request held for some milliseconds until its loan comes wins that back.
//
// A new leader has an empty pool. Where its predecessor stopped in order, its last word (Remainder) says what was left. Of
// one that crashed nothing can be taken over: what a pod saw of the pool may be older than a loan to another pod that is
// dead, proven gone and forgotten.
//
// Everything here is a pure state machine: messages in, grants out, time a parameter in nanoseconds of one monotonic clock.
// Nothing but a Purse is safe for concurrent use; the owner serialises the calls. Package sim runs it against the world.
package escrow
