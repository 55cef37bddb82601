// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota is the sidecar's end of the stream to the operator: what to enforce comes in, what is in force goes out.
//
// [machine] decides what to send, from messages and times that it is given; [Client] does the input and output around it:
// dialling, credentials, backoff. The split keeps the rules testable without a network:
//
//	               Hello(holdings)                     only one stream exists at a time
//	sidecar  ─────────────────────────▶  operator
//	         ◀── Redirect(leader, epoch)               a follower: adopt the epoch, dial the leader
//	         ◀── Welcome(epoch, heartbeat)             the leader: adopt the epoch, refuse anything older
//	         ◀── Assignment(epoch, seq)                apply, and only then
//	         ─── Ack(epoch, seq) ──────▶               no decision can use older numbers any more
//	         ─── Usage(nonce) ─────────▶               at every heartbeat
//	         ◀── HeartbeatAck(nonce)                   three missing: reconnect
//	         ─── Usage(draining) ──────▶               at once
//	         ─── Drained, end ─────────▶               the last request has been decided
//
// When the operator is away everything stays as it was last assigned, for ever.
package quota
