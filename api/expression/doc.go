// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression decides what the CEL of a policy may say, and evaluates it on a request. The operator compiles an
// expression to refuse a bad one when it is applied; the sidecar compiles the same text once, when the policy arrives.
//
// An expression sees:
//
//	request.method    string, such as 'POST'
//	request.path      string, normalised, without the query
//	request.host      string, in small letters and without a port
//	request.peer      string, the address of the connection's other end
//	request.headers   map of the request's header: request.headers['x-plan']; 'x-plan' in request.headers
//	request.query     map of the URL's query: request.query['page']
//
// and CEL's standard functions with its string functions (lowerAscii, split, replace and their like). Names of header
// fields are the same in any case; of several lines the first counts. The maps can be asked, not walked: there are no
// loops, so that the cost of an expression is bounded.
package expression
