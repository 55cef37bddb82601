// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exposition is what both programs expose as metrics, from their real registries and with every feature in use: for the
// reference of metrics, and for whoever must know that a metric exists.
package exposition
