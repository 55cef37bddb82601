// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// The demo is a script in four files: prepare.go brings up what it needs, scene.go makes pods come and go under load,
// table.go prints what is seen meanwhile, and verdict.go judges it. Everything is named in names.go.
