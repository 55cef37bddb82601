// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim_test

// raced says that the race detector is on, with which measuring takes too long: nothing runs beside anything here.
const raced = false
