// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load sends a bounded stream of requests to a Service of a test cluster and remembers every answer, so that a test
// can say which request failed, on which pod, and when.
package load
