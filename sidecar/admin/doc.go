// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admin serves what is asked about the sidecar itself: probes and metrics on the pod's address, live state,
// decisions and the drain hook on loopback, where nobody outside the pod reaches them.
//
// No answer, metric or log holds the value of a key.
package admin
