// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package door translates what other proxies ask into requests that the admission engine decides, and its decisions into their
// answers. A door never decides.
package door
