// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limiter decides whether a request may pass.
//
// A [TokenBucket] limits one thing, a [Keyed] store each of millions, and [AllAt] takes from several of them all or
// nothing. A [StripedBucket] limits one thing that all processors ask for all the time. The other limiters answer needs
// that a token bucket does not: [Meter] colours instead of refusing, [LeakyBucket] delays, [FixedWindow],
// [SlidingWindow] and [SlidingLog] count in windows, [Concurrency] counts what is in flight. Package httplimit puts
// them in front of an http.Handler.
//
// # What holds for all
//
//   - Time is a parameter: every decision has an At form that takes a [Time] and reads no clock. The forms without it
//     read [Now]; [FastNow] is quicker where the machine allows it.
//   - A clock that jumps back, stands still or leaps ahead is harmless: it grants nothing beyond the limit.
//   - Decisions may be made from any number of goroutines, allocate nothing, and start no goroutine.
//   - Rates are fractions ([Rate]), so 5 per hour is 5 per hour after a year too; amounts are counted in millionths
//     ([Tokens]).
//   - Rate and burst can be changed under way. That mints nothing, and once the change has returned no decision uses
//     the former numbers.
//
// # The law
//
// In every window of length W a token bucket grants
//
//	burst + rate*W
//
// and never a millionth of a token more: concurrency and reconfiguration need no allowance, and rounding does not add
// up. It refuses nothing that the ideal bucket of real numbers would grant with a millionth to spare.
package limiter
