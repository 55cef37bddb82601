// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota decides which pod enforces which part of every limit, and keeps the streams over which the pods learn it.
//
//	reconciler ── Publish ──▶ ┌──────┐ ◀── ObservePod, ObserveNode ── informers
//	                          │ Home │
//	sidecar ══ stream ══ Server ──▶  │ ── Plan ──▶ one escrow.Ledger per limit
//	                          └──────┘ ── changed ──▶ reconciler (status)
//
// Home is the only owner of state: it lives in the leader's memory and is rebuilt, after a fail-over, from what the pods
// themselves report. Its methods may be called from any goroutine; each holds the one lock for a short time and does no I/O.
package quota
