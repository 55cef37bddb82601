// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sim drives the leader and the holders of package escrow, exactly as they are shipped, through a world of
// virtual time: messages that are late, lost, repeated and overtaken, cut links, frozen and killed processes, leaders that
// fail over, clocks that drift, pods that come and go, and edits. An oracle checks every interval of every run.
//
// A run is a function of its seed alone: the same seed replays the same world. Nothing here is safe for concurrent use.
package sim
