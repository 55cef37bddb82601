// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sidecar is the program that enforces a pod's share of its limits: it wires the parts together and carries them
// through start, drain and end.
//
//	quota ── assignments ──▶ admission ◀── decide ── proxy ◀── clients
//	                             ▲                     └──────▶ application on loopback
//	                             └── state, check ── admin ◀── kubelet, Prometheus, people
package sidecar
