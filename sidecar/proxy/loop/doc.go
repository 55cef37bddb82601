// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop waits for many sockets in one goroutine and calls who handles each of them, so that a connection costs
// neither a goroutine nor a buffer while nothing happens on it.
//
// On Linux it is one epoll instance, edge-triggered, and each socket is registered once; elsewhere goroutines read and
// write, and report to the same loop. What runs on a loop needs no locks: everything but Post is for the loop's own
// goroutine, and nothing on it may block.
package loop
