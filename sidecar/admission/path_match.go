// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"regexp"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// pathMatcher compares paths: exactly, by segments from the left, by a template or by an expression.
type pathMatcher struct {
	prefix  bool
	want    paths // of an exact path or a prefix
	pattern *regexp.Regexp
	// template holds the segments of a template; nil when the match is none.
	template []segment
}

// segment is one segment of a template: a literal, or a variable. The last one may be a variable for all that is left.
type segment struct {
	literal, variable string
	rest              bool
}

func compilePath(p *quotav1.PathMatch) (*pathMatcher, error) {
	value := p.GetValue()
	if p.GetType() == quotav1.PathMatch_REGULAR_EXPRESSION {
		pattern, err := wholly(value)
		return &pathMatcher{pattern: pattern}, err
	}
	if !strings.HasPrefix(value, "/") {
		return nil, fmt.Errorf("path %q does not begin with a slash", value)
	}
	switch p.GetType() {
	case quotav1.PathMatch_EXACT:
		return &pathMatcher{want: readWanted(value)}, nil
	case quotav1.PathMatch_PREFIX:
		// Gateway API: a trailing slash in a prefix says nothing.
		want := readWanted(value)
		want.sent = strings.TrimRight(want.sent, "/")
		want.strict = strings.TrimRight(want.strict, "/")
		want.loose = strings.TrimRight(want.loose, "/")
		return &pathMatcher{prefix: true, want: want}, nil
	case quotav1.PathMatch_TEMPLATE:
		segments, err := parseTemplate(value)
		return &pathMatcher{template: segments}, err
	}
	return nil, fmt.Errorf("path match of unknown type %v", p.GetType())
}

// readWanted reads a policy's path. One that names bytes that are read in different ways means them: "/a%2Fb" is not "/a/b".
func readWanted(value string) paths {
	want := readPath(value)
	if strings.ContainsAny(value, `;#\`) || strings.Contains(strings.ToUpper(value), "%2F") {
		want.loose = want.strict
	}
	return want
}

// parseTemplate reads "/users/{user}/files/{rest...}".
func parseTemplate(value string) ([]segment, error) {
	var out []segment
	seen := map[string]bool{}
	for part := range strings.SplitSeq(value[1:], "/") {
		if !strings.ContainsAny(part, "{}") {
			out = append(out, segment{literal: decode(part, unreserved)})
			continue
		}
		name, ok := strings.CutPrefix(part, "{")
		name, closed := strings.CutSuffix(name, "}")
		name, rest := strings.CutSuffix(name, "...")
		if !ok || !closed || !isName(name) {
			return nil, fmt.Errorf("path template %q: %q is neither a segment nor a variable such as {user}", value, part)
		}
		if seen[name] {
			return nil, fmt.Errorf("path template %q: variable %s stands twice", value, name)
		}
		seen[name] = true
		out = append(out, segment{variable: name, rest: rest})
	}
	for _, s := range out[:len(out)-1] {
		if s.rest {
			return nil, fmt.Errorf("path template %q: a variable with ... may stand at the end only", value)
		}
	}
	return out, nil
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// holds reports whether any reading of the request's path matches. A template leaves its variables in the reading.
func (m *pathMatcher) holds(r *reading) bool {
	p := &r.paths
	switch {
	case m.template != nil:
		return m.fill(r, p.strict) || p.loose != p.strict && m.fill(r, p.loose) || p.sent != p.strict && m.fill(r, p.sent)
	case m.pattern != nil:
		return m.pattern.MatchString(p.strict) || p.loose != p.strict && m.pattern.MatchString(p.loose) ||
			p.sent != p.strict && m.pattern.MatchString(p.sent)
	case m.prefix:
		return hasSegments(p.sent, m.want.sent) || hasSegments(p.strict, m.want.strict) || hasSegments(p.loose, m.want.loose)
	}
	return p.sent == m.want.sent || p.strict == m.want.strict || p.loose == m.want.loose
}

// holdsAlways reports whether every reading matches: what an exemption needs.
func (m *pathMatcher) holdsAlways(r *reading) bool {
	for _, path := range []string{r.paths.sent, r.paths.strict, r.paths.loose} {
		one := reading{Request: r.Request, paths: paths{path, path, path}}
		if !m.holds(&one) {
			return false
		}
	}
	return true
}

// fill matches a path with the template.
func (m *pathMatcher) fill(r *reading, path string) bool {
	r.variables = r.variables[:0]
	rest, more := path[1:], true
	for _, s := range m.template {
		if !more {
			return false
		}
		if s.rest {
			r.variables = append(r.variables, variable{s.variable, rest})
			return rest != ""
		}
		var part string
		part, rest, more = strings.Cut(rest, "/")
		switch {
		case s.variable == "" && part != s.literal:
			return false
		case s.variable != "" && part == "":
			return false
		case s.variable != "":
			r.variables = append(r.variables, variable{s.variable, part})
		}
	}
	return !more
}

// hasSegments reports whether path begins with the segments of prefix, which does not end in a slash.
func hasSegments(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}
