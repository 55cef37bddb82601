// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// valueMatcher compares one value: exactly, by an expression on the whole of it, or not at all.
type valueMatcher struct {
	exact   string
	pattern *regexp.Regexp // RE2: its time is linear in the value
	present bool
}

func compileValue(kind quotav1.HeaderMatch_Type, value string) (valueMatcher, error) {
	switch kind {
	case quotav1.HeaderMatch_EXACT:
		return valueMatcher{exact: value}, nil
	case quotav1.HeaderMatch_REGULAR_EXPRESSION:
		pattern, err := wholly(value)
		return valueMatcher{pattern: pattern}, err
	case quotav1.HeaderMatch_PRESENT:
		return valueMatcher{present: true}, nil
	}
	return valueMatcher{}, fmt.Errorf("match of unknown type %v", kind)
}

// wholly compiles an expression that must match the whole of a value.
func wholly(expression string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("regular expression: %w", err)
	}
	return pattern, nil
}

func (m *valueMatcher) holds(value string) bool {
	switch {
	case m.present:
		return true
	case m.pattern != nil:
		return m.pattern.MatchString(value)
	}
	return value == m.exact
}

func (m *valueMatcher) isExact() bool { return !m.present && m.pattern == nil }

type headerMatcher struct {
	name  string // canonical
	value valueMatcher
}

func compileHeader(h *quotav1.HeaderMatch) (headerMatcher, error) {
	if h.GetName() == "" {
		return headerMatcher{}, fmt.Errorf("header match without a name")
	}
	value, err := compileValue(h.GetType(), h.GetValue())
	if err != nil {
		return headerMatcher{}, fmt.Errorf("header %s: %w", h.GetName(), err)
	}
	return headerMatcher{canonical(h.GetName()), value}, nil
}

func (m *headerMatcher) holds(r *reading) bool {
	if m.name == hostHeader {
		if m.value.isExact() {
			return strings.EqualFold(r.Host, m.value.exact) || strings.EqualFold(r.host(), m.value.exact)
		}
		return r.Host != "" && (m.value.holds(r.Host) || m.value.holds(r.host()))
	}
	lines, _ := r.lines(m.name)
	return slices.ContainsFunc(lines, m.value.holds)
}

type queryMatcher struct {
	name  string
	value valueMatcher
}

func compileQuery(q *quotav1.QueryMatch) (queryMatcher, error) {
	if q.GetName() == "" {
		return queryMatcher{}, fmt.Errorf("query match without a name")
	}
	value, err := compileValue(q.GetType(), q.GetValue())
	if err != nil {
		return queryMatcher{}, fmt.Errorf("query parameter %s: %w", q.GetName(), err)
	}
	return queryMatcher{q.GetName(), value}, nil
}

func (m *queryMatcher) holds(r *reading) bool {
	for name, value := range parameters(r.Query) {
		if name == m.name && m.value.holds(value) {
			return true
		}
	}
	return false
}

func canonical(header string) string { return textproto.CanonicalMIMEHeaderKey(header) }
