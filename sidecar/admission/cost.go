// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/headgate/headgate/api/expression"
	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/limiter"
)

// cost says how many tokens a request takes of a limit: one at least. What is no number, negative or infinite costs the
// most: a client that can write nonsense gains nothing by it.
type cost struct {
	tokens     uint64 // of every request; of one without the header
	header     string // canonical
	expression *expression.Program
	response   *responseCost
	most       uint64 // what nonsense costs
	cut        bool   // whether more than most is cut to it
}

// responseCost is a cost that the answer tells.
type responseCost struct {
	header string // canonical
	debt   limiter.Tokens
}

const maxCost = uint64(limiter.MaxBurst / limiter.Token)

// compileCost reads the cost of a limit of a burst, in whole tokens.
func compileCost(in *quotav1.Cost, burst uint64) (cost, error) {
	out := cost{tokens: 1, most: burst}
	if in == nil {
		return out, nil
	}
	if in.GetMax() > 0 {
		out.most, out.cut = in.GetMax(), true
	}
	var err error
	switch source := in.GetSource().(type) {
	case *quotav1.Cost_Tokens:
		out.tokens = source.Tokens
	case *quotav1.Cost_Header:
		if source.Header == "" {
			return out, fmt.Errorf("cost by a header without a name")
		}
		out.header = canonical(source.Header)
		out.tokens = max(in.GetFallback(), 1)
	case *quotav1.Cost_Expression:
		out.expression, err = expression.Compile(source.Expression, expression.Number)
	case *quotav1.Cost_Response:
		if source.Response.GetHeader() == "" || source.Response.GetMaxDebt() > maxCost {
			return out, fmt.Errorf("cost by the answer's header %q with a debt of %d", source.Response.GetHeader(), source.Response.GetMaxDebt())
		}
		out.tokens = source.Response.GetEstimate()
		out.response = &responseCost{canonical(source.Response.GetHeader()), limiter.Tokens(source.Response.GetMaxDebt()) * limiter.Token}
	default:
		err = fmt.Errorf("cost of unknown kind")
	}
	if err == nil && (out.tokens == 0 || out.tokens > maxCost || out.most > maxCost) {
		err = fmt.Errorf("cost of %d tokens, at most %d", out.tokens, out.most)
	}
	return out, err
}

// of is what a request costs.
func (c *cost) of(r *reading) uint64 {
	n := c.tokens
	switch {
	case c.header != "":
		if line, ok := r.first(c.header); ok {
			n = c.read(line)
		}
	case c.expression != nil:
		value, err := c.expression.Number(r.facts())
		if err != nil {
			value = math.NaN()
		}
		n = c.whole(value)
	}
	if c.cut {
		n = min(n, c.most)
	}
	if r.Hits > 1 {
		if n > maxCost/r.Hits {
			return maxCost
		}
		n *= r.Hits
	}
	return n
}

// read is the cost that a header's line says.
func (c *cost) read(line string) uint64 {
	value, err := strconv.ParseFloat(strings.Trim(line, " \t"), 64)
	if err != nil {
		value = math.NaN()
	}
	return c.whole(value)
}

// whole rounds a cost up to whole tokens, one at least.
func (c *cost) whole(value float64) uint64 {
	switch {
	case math.IsNaN(value) || value < 0 || math.IsInf(value, 0):
		return c.most
	case value >= float64(maxCost):
		return maxCost
	}
	return max(1, uint64(math.Ceil(value)))
}
