// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbed reaches the cluster that the demo and the end-to-end tests run on: it installs the chart, makes the
// application, waits for what must become true, and finds the records of what the pods decided.
package testbed
