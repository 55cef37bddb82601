// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package footprint decides what of the program stays in memory. A sidecar runs in every pod, and most of its code and tables
// serve its start only.
package footprint
