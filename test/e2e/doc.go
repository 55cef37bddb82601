// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: the chart, installed on a real cluster, under load, judged by the oracle. They have
// the build tag e2e; `make e2e` runs them. Each test is named by what a user would lose if it failed.
//
//	suite_test.go    brings up the cluster and the operator, and lists all cases in their order
//	space_test.go    a namespace for each case, with its app, its load and its verdict
//	*_test.go        the cases
package e2e
