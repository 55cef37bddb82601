// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Request is what an expression sees of a request.
type Request struct {
	Method, Path, Host, Peer string
	// Header and Query find the first value of a name, whatever the case of a header's. Both are required.
	Header, Query func(name string) (string, bool)
}

// Holds evaluates a Condition. An evaluation that fails, as for a header that is not there, returns the error.
func (p *Program) Holds(r *Request) (bool, error) {
	v, err := p.eval(r)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("expression: yielded %s", v.Type().TypeName())
	}
	return bool(b), nil
}

// Text evaluates a Text.
func (p *Program) Text(r *Request) (string, error) {
	v, err := p.eval(r)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10), nil
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', -1, 64), nil
	case types.Bool:
		return strconv.FormatBool(bool(v)), nil
	}
	return "", fmt.Errorf("expression: yielded %s", v.Type().TypeName())
}

// Number evaluates a Number. The value may be any double: infinite, negative, or not a number.
func (p *Program) Number(r *Request) (float64, error) {
	v, err := p.eval(r)
	if err != nil {
		return math.NaN(), err
	}
	switch v := v.(type) {
	case types.Int:
		return float64(v), nil
	case types.Uint:
		return float64(v), nil
	case types.Double:
		return float64(v), nil
	}
	return math.NaN(), fmt.Errorf("expression: yielded %s", v.Type().TypeName())
}

func (p *Program) eval(r *Request) (ref.Val, error) {
	v, _, err := p.program.Eval(activation{r})
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return v, nil
}

// activation resolves an expression's variables in a request.
type activation struct{ request *Request }

func (a activation) ResolveName(name string) (any, bool) {
	switch name {
	case varMethod:
		return a.request.Method, true
	case varPath:
		return a.request.Path, true
	case varHost:
		return a.request.Host, true
	case varPeer:
		return a.request.Peer, true
	case varHeaders:
		return texts{a.request.Header}, true
	case varQuery:
		return texts{a.request.Query}, true
	}
	return nil, false
}

func (activation) Parent() interpreter.Activation { return nil }

// texts is a map that is asked, and never built or walked.
type texts struct {
	find func(name string) (string, bool)
}

var _ traits.Mapper = texts{}

var errWalked = errors.New("the headers and the query of a request can be asked for a name, not walked")

func (m texts) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	value, ok := m.find(string(name))
	return types.String(value), ok
}

func (m texts) Get(key ref.Val) ref.Val {
	if v, ok := m.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key.Value())
}

func (m texts) Contains(key ref.Val) ref.Val {
	_, ok := m.Find(key)
	return types.Bool(ok)
}

func (texts) Iterator() traits.Iterator                 { return nil } // the macros that would ask are switched off
func (texts) Size() ref.Val                             { return types.WrapErr(errWalked) }
func (texts) Equal(ref.Val) ref.Val                     { return types.WrapErr(errWalked) }
func (texts) Type() ref.Type                            { return types.MapType }
func (texts) Value() any                                { return nil }
func (texts) ConvertToType(ref.Type) ref.Val            { return types.WrapErr(errWalked) }
func (texts) ConvertToNative(reflect.Type) (any, error) { return nil, errWalked }
