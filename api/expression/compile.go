// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
)

// Kind is what an expression must yield.
type Kind int

const (
	// Condition is a bool.
	Condition Kind = iota
	// Text is a string, a number or a bool, written as a string.
	Text
	// Number is an int, a uint or a double.
	Number
)

// MaxCost bounds an expression, in CEL's units of cost: by estimate when it is compiled, and again when it runs. It is well
// below a millisecond.
const MaxCost = 100_000

// What the estimate takes a request to be at most.
const (
	maxText    = 8 << 10
	maxEntries = 128
)

// Program is a compiled expression. It is immutable; its methods may be called concurrently.
type Program struct {
	program cel.Program
}

// Compile returns the program of an expression. The error says what is wrong, and where in the text.
func Compile(source string, kind Kind) (*Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	if !kind.accepts(ast.OutputType()) {
		return nil, fmt.Errorf("the expression yields %s, and %s is needed", ast.OutputType(), kind)
	}
	cost, err := env.EstimateCost(ast, sizes{})
	if err != nil {
		return nil, fmt.Errorf("estimate cost: %w", err)
	}
	if cost.Max > MaxCost {
		return nil, fmt.Errorf("the expression may cost %d, more than %d: compare whole values rather than searching in them", cost.Max, uint64(MaxCost))
	}
	program, err := env.Program(ast, cel.CostLimit(MaxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("%s", oneLine(err.Error()))
	}
	return &Program{program}, nil
}

var environment = sync.OnceValues(func() (*cel.Env, error) {
	texts := cel.MapType(cel.StringType, cel.StringType)
	return cel.NewEnv(
		cel.Variable(varMethod, cel.StringType),
		cel.Variable(varPath, cel.StringType),
		cel.Variable(varHost, cel.StringType),
		cel.Variable(varPeer, cel.StringType),
		cel.Variable(varHeaders, texts),
		cel.Variable(varQuery, texts),
		ext.Strings(),
		cel.ClearMacros(), cel.Macros(cel.HasMacro), // no loops
		cel.ParserRecursionLimit(64),
		cel.ParserExpressionSizeLimit(4096),
	)
})

const (
	varMethod  = "request.method"
	varPath    = "request.path"
	varHost    = "request.host"
	varPeer    = "request.peer"
	varHeaders = "request.headers"
	varQuery   = "request.query"
)

func (k Kind) accepts(t *cel.Type) bool {
	switch k {
	case Condition:
		return t.IsExactType(cel.BoolType)
	case Number:
		return t.IsExactType(cel.IntType) || t.IsExactType(cel.UintType) || t.IsExactType(cel.DoubleType)
	default:
		return t.IsExactType(cel.StringType) || t.IsExactType(cel.BoolType) || Number.accepts(t)
	}
}

// String is what the kind is called in messages.
func (k Kind) String() string {
	switch k {
	case Condition:
		return "bool"
	case Number:
		return "a number"
	default:
		return "a string, a number or a bool"
	}
}

// sizes bound what the cost estimate knows nothing of.
type sizes struct{}

func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	if element.Type().IsExactType(cel.StringType) {
		return &checker.SizeEstimate{Max: maxText}
	}
	return &checker.SizeEstimate{Max: maxEntries}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// oneLine drops the picture of the source that CEL draws below its message: conditions and errors of kubectl are one line.
func oneLine(message string) string {
	var out []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '|' {
			out = append(out, strings.TrimPrefix(line, "ERROR: <input>:"))
		}
	}
	return strings.Join(out, "; ")
}
