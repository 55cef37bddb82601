// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Welcome is a leader's first word to a process. The process adopts the epoch first and reports afterwards.
type Welcome struct {
	Epoch uint64
	// Sent is when the leader sent it, by the leader's clock (nanoseconds).
	Sent int64
}

// Beat is what a process says about its share of one limit: at once after a change, and as a heartbeat.
type Beat struct {
	// Epoch that the process has adopted.
	Epoch uint64
	// Sent is when the process sent it, by the process's clock (nanoseconds). It rises strictly.
	Sent int64
	// Heard is the newest Sent of the leader of this epoch that has reached the process: what the promise is timed by.
	Heard int64
	// Promise says that the process earns nothing from the sleeping part of any share of this limit for D from now on.
	Promise bool
	// Acked is the newest Order in force: no decision can use an older one any more.
	Acked uint64
	// Units and Awake are the share in force, for a leader that has not heard of it.
	Units uint64
	Awake bool
	// Draining says that the process still serves and wants no larger share.
	Draining bool
	// Busy says that the process has use for all of its share.
	Busy bool
	// Kept is the most that any account's part of the share holds while it sleeps, in micro-tokens. It grows no more before
	// the process wakes.
	Kept int64
}

// Order is a leader's word on a process's share of one limit: always complete, the newest replaces all older ones.
type Order struct {
	Epoch uint64
	// Sent is when the leader sent it, by the leader's clock (nanoseconds).
	Sent int64
	// Heard is the newest Beat.Sent that has reached the leader: the acknowledgement of a promise.
	Heard int64
	// Seq rises with every change.
	Seq uint64
	// Limit is what the share is a part of.
	Limit Limit
	// Units of the limit's rate, and of a quarter of its burst, out of Whole.
	Units uint64
	// Awake says that a tenth of the rate is earned all the time.
	Awake bool
	// Stay says that nearly all processes have use for all of their shares: who has makes no promise, and earns its share in
	// place.
	Stay bool
	// Stand is how many tokens the process may keep at hand while nobody asks for any, so that its next request waits for
	// nothing. They are lent while there are plenty, and called back when others are short.
	Stand int64
}

// Claim is what a process says about one account. All but Want, Least and Sent are counted from Born
// on and never decrease, so a lost, repeated or late claim changes nothing.
type Claim struct {
	Epoch uint64
	// Sent is when the process sent it, by the process's clock (nanoseconds). It rises strictly.
	Sent int64
	// Born is when the process began to keep this account, by its clock: it tells one life of the account from the next.
	Born int64
	// Granted is the highest Loan.Granted that has reached the process, in tokens.
	Granted int64
	// Spent tokens of loans: committed, never to come back.
	Spent int64
	// Returned tokens of loans: the only thing that credits the pool.
	Returned int64
	// Want is how far the process would like Granted to rise, in tokens; at or below Granted it wants nothing.
	Want int64
	// Least is the smallest loan that is of use, in tokens: the cost of a held request. A loan is not less.
	Least int64
	// Idle says that no request is behind it: what is borrowed, and wanted, is to stand by.
	Idle bool
}

// possible reports whether the counters can be those of a process that keeps the rules.
func (c Claim) possible() bool {
	return c.Spent >= 0 && c.Returned >= 0 && c.Spent <= c.Granted && c.Returned <= c.Granted-c.Spent
}

// Loan raises what a process has been granted of one account.
type Loan struct {
	Epoch uint64
	// Born of the claim that it answers. A process that has begun the account anew refuses it.
	Born int64
	// Granted counts all tokens granted since Born; the increase is the loan.
	Granted int64
	// Recall asks for what stands by: others are short.
	Recall bool
	// Scarce says that none is left: what has not been lent now comes as it is earned, if at all.
	Scarce bool
}
