// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release says which release a program was built from.
package release

import "runtime/debug"

// Linked is set when a release is linked (-X).
var Linked = ""

// Version is the release's, or else that of the module, or "(devel)" where neither is known.
func Version() string {
	if Linked != "" {
		return Linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
