// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/api/expression"
)

func request(headers map[string]string) *expression.Request {
	find := func(values map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := values[strings.ToLower(name)]; return v, ok }
	}
	return &expression.Request{
		Method: "POST", Path: "/v1/orders", Host: "shop.example", Peer: "10.1.2.3",
		Header: find(headers), Query: find(map[string]string{"page": "3"}),
	}
}

func TestBadExpressionsAreRefusedWithTheReason(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		kind   expression.Kind
		want   string
	}{
		"a word that is missing":          {`request.method = 'GET'`, expression.Condition, "Syntax error"},
		"a variable that does not exist":  {`request.body == ''`, expression.Condition, "undeclared reference"},
		"a condition that is a string":    {`request.method`, expression.Condition, "yields string, and bool is needed"},
		"a cost that is a string":         {`request.headers['x-cost']`, expression.Number, "a number is needed"},
		"a key that is a list":            {`request.path.split('/')`, expression.Text, "a string, a number or a bool is needed"},
		"a loop":                          {`request.headers.exists(h, h == 'x')`, expression.Condition, "undeclared reference to 'exists'"},
		"a search that costs too much":    {`request.headers['a'].matches('` + strings.Repeat("(a|b)*c", 100) + `')`, expression.Condition, "may cost"},
		"an expression without an end":    {strings.Repeat("(", 200) + "true", expression.Condition, ""},
		"an expression that compares two": {`request.headers == request.query && 1 == 'a'`, expression.Condition, "no matching overload"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := expression.Compile(tc.source, tc.kind)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the message is %q, want one line with %q", err, tc.want)
			}
		})
	}
}

func TestConditionsSeeTheRequest(t *testing.T) {
	for source, want := range map[string]bool{
		`request.method == 'POST' && request.path.startsWith('/v1/')`: true,
		`request.headers['x-plan'] == 'free'`:                         true,
		`request.headers['X-Plan'] == 'free'`:                         true,
		`request.headers['x-plan'] == 'gold'`:                         false,
		`'x-plan' in request.headers`:                                 true,
		`'x-none' in request.headers`:                                 false,
		`has(request.headers.nothing)`:                                false,
		`int(request.query['page']) > 2`:                              true,
		`request.peer.startsWith('10.')`:                              true,
		`request.host.endsWith('.example')`:                           true,
		`request.headers['x-plan'].upperAscii() == 'FREE'`:            true,
	} {
		p, err := expression.Compile(source, expression.Condition)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got, err := p.Holds(request(map[string]string{"x-plan": "free"}))
		if err != nil || got != want {
			t.Errorf("%s holds: %v (%v), want %v", source, got, err, want)
		}
	}
}

func TestWhatCannotBeEvaluatedIsAnErrorAndNotAnAnswer(t *testing.T) {
	for source, kind := range map[string]expression.Kind{
		`request.headers['x-none'] == 'a'`: expression.Condition,
		`int(request.headers['x-plan'])`:   expression.Number,
		`request.query['none']`:            expression.Text,
		`size(request.headers) > 0`:        expression.Condition,
		`request.headers == request.query`: expression.Condition,
		`1 / (size(request.path) - 10)`:    expression.Number,
	} {
		p, err := expression.Compile(source, kind)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		r := request(map[string]string{"x-plan": "free"})
		switch kind {
		case expression.Condition:
			if ok, err := p.Holds(r); err == nil || ok {
				t.Errorf("%s: %v without an error", source, ok)
			}
		case expression.Number:
			if n, err := p.Number(r); err == nil || !math.IsNaN(n) {
				t.Errorf("%s: %v without an error", source, n)
			}
		default:
			if s, err := p.Text(r); err == nil || s != "" {
				t.Errorf("%s: %q without an error", source, s)
			}
		}
	}
}

func TestTextsAndNumbers(t *testing.T) {
	r := request(map[string]string{"x-cost": "7"})
	for source, want := range map[string]string{
		`request.headers['x-cost'] + '/' + request.host`: "7/shop.example",
		`size(request.path)`:                             "10", `1.5`: "1.5", `request.method == 'GET'`: "false", `3u`: "3",
	} {
		p, err := expression.Compile(source, expression.Text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Text(r); err != nil || got != want {
			t.Errorf("%s = %q (%v), want %q", source, got, err, want)
		}
	}
	for source, want := range map[string]float64{
		`double(request.headers['x-cost']) * 1.5`: 10.5, `request.method == 'POST' ? 5 : 1`: 5, `-1`: -1, `1.0 / 0.0`: math.Inf(1), `2u`: 2,
	} {
		p, err := expression.Compile(source, expression.Number)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Number(r); err != nil || got != want {
			t.Errorf("%s = %v (%v), want %v", source, got, err, want)
		}
	}
}

// A policy's author is not trusted with the operator's memory or time, nor the sidecar's.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"true", "request.headers['a'].matches('a*')", "request.path.split('/')[1]", "((1))", "'a'.replace('a', request.path)"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, source string) {
		if len(source) > 2048 {
			return
		}
		for _, kind := range []expression.Kind{expression.Condition, expression.Text, expression.Number} {
			p, err := expression.Compile(source, kind)
			if err != nil {
				continue
			}
			r := request(nil)
			switch kind {
			case expression.Condition:
				_, _ = p.Holds(r)
			case expression.Text:
				_, _ = p.Text(r)
			default:
				_, _ = p.Number(r)
			}
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	p, err := expression.Compile(`request.headers['x-plan'] == 'free' && request.method == 'POST'`, expression.Condition)
	if err != nil {
		b.Fatal(err)
	}
	r := request(map[string]string{"x-plan": "free"})
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := p.Holds(r); !ok || err != nil {
			b.Fatal(err)
		}
	}
}
