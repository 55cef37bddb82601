// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/api/expression"
	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// compileCost reads the cost of a limit of a burst. A cost that can never be granted is refused where it is known.
func compileCost(c *v1alpha1.Cost, burst uint64) (*quotav1.Cost, error) {
	if c == nil {
		return nil, nil
	}
	out := &quotav1.Cost{}
	known := func(field string, tokens *int64) (uint64, error) {
		switch {
		case tokens == nil:
			return 0, nil
		case *tokens < 1:
			return 0, fmt.Errorf(".%s: %d is below 1, and no request is free: write 1 or more", field, *tokens)
		case uint64(*tokens) > burst:
			return 0, fmt.Errorf(".%s: %d is more than burst %d, so such a request could never be admitted: write burst: %d or more", field, *tokens, burst, *tokens)
		}
		return uint64(*tokens), nil
	}
	var err error
	if out.Max, err = known("max", c.Max); err != nil {
		return nil, err
	}
	sources := 0
	if c.Tokens != nil {
		sources++
		tokens, err := known("tokens", c.Tokens)
		if err != nil {
			return nil, err
		}
		out.Source = &quotav1.Cost_Tokens{Tokens: tokens}
	}
	if c.Header != "" {
		sources++
		if out.Fallback, err = known("fallback", c.Fallback); err != nil {
			return nil, err
		}
		out.Source = &quotav1.Cost_Header{Header: strings.ToLower(c.Header)}
	}
	if c.Expression != "" {
		sources++
		if _, err := expression.Compile(c.Expression, expression.Number); err != nil {
			return nil, fmt.Errorf(".expression: %w; write for example request.method == 'POST' ? 5 : 1", err)
		}
		out.Source = &quotav1.Cost_Expression{Expression: c.Expression}
	}
	if r := &c.FromResponse; *r != (v1alpha1.ResponseCost{}) {
		sources++
		estimate, err := known("fromResponse.estimate", &r.Estimate)
		if err != nil {
			return nil, err
		}
		debt := burst
		if r.MaxDebt != nil && *r.MaxDebt >= 0 {
			debt = uint64(*r.MaxDebt)
		}
		out.Source = &quotav1.Cost_Response{Response: &quotav1.ResponseCost{Header: strings.ToLower(r.Header), Estimate: estimate, MaxDebt: debt}}
	}
	if sources != 1 {
		return nil, fmt.Errorf(": exactly one of tokens, header, expression and fromResponse must be set, such as {tokens: 5}")
	}
	return out, nil
}
