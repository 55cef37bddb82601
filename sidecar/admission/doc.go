// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission decides whether a request may pass: it matches the request's head against the limits of the
// snapshot in force and takes from the bucket of every matching limit, or from none.
//
// The package does no I/O, reads no clock and writes no log; the caller gives the time. A door (the HTTP proxy, the JSON
// check, later Envoy's rate limit service) translates what it received into a [Request] and a [Decision] into an answer.
//
// # What matches
//
// A limit applies to a request when one of its matches holds, or when it has none. Paths are compared by whole segments
// and in every reading that an application may give to the bytes as sent (see paths), so that a limit cannot be stepped
// around by spelling a path differently; what is forwarded stays as sent. Letters keep their case, as in Gateway API: an
// application that serves /V1 as /v1 needs a match for it. A request that lacks a header named in a
// limit's key is not matched by that limit. Where a header comes in several lines, a match holds when any of them has
// the wanted value, and a key takes the first.
package admission
