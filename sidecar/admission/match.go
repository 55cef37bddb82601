// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// matcher is one compiled match: it holds when every part that is present holds.
type matcher struct {
	path    *pathMatcher
	methods []string
	headers []headerMatcher
}

type pathMatcher struct {
	prefix bool
	want   paths
}

type headerMatcher struct {
	name  string // canonical
	value string
}

const hostHeader = "Host"

func compileMatch(m *quotav1.Match) (matcher, error) {
	var out matcher
	if p := m.GetPath(); p != nil {
		if !strings.HasPrefix(p.GetValue(), "/") {
			return out, fmt.Errorf("path %q does not begin with a slash", p.GetValue())
		}
		switch p.GetType() {
		case quotav1.PathMatch_EXACT:
			out.path = &pathMatcher{want: readWanted(p.GetValue())}
		case quotav1.PathMatch_PREFIX:
			// Gateway API: a trailing slash in a prefix says nothing.
			want := readWanted(p.GetValue())
			want.sent = strings.TrimRight(want.sent, "/")
			want.strict = strings.TrimRight(want.strict, "/")
			want.loose = strings.TrimRight(want.loose, "/")
			out.path = &pathMatcher{prefix: true, want: want}
		default:
			return out, fmt.Errorf("path match of unknown type %v", p.GetType())
		}
	}
	for _, method := range m.GetMethods() {
		if method == "" {
			return out, fmt.Errorf("empty method")
		}
		out.methods = append(out.methods, method)
	}
	for _, h := range m.GetHeaders() {
		if h.GetName() == "" {
			return out, fmt.Errorf("header match without a name")
		}
		if h.GetType() != quotav1.HeaderMatch_EXACT {
			return out, fmt.Errorf("header match of unknown type %v", h.GetType())
		}
		out.headers = append(out.headers, headerMatcher{textproto.CanonicalMIMEHeaderKey(h.GetName()), h.GetValue()})
	}
	return out, nil
}

// readWanted reads a policy's path. One that names bytes that are read in different ways means them: "/a%2Fb" is not "/a/b".
func readWanted(value string) paths {
	want := readPath(value)
	if strings.ContainsAny(value, `;#\`) || strings.Contains(strings.ToUpper(value), "%2F") {
		want.loose = want.strict
	}
	return want
}

func (m *matcher) holds(r *Request, p *paths) bool {
	if m.path != nil && !m.path.holds(p) {
		return false
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, r.Method) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].holds(r) {
			return false
		}
	}
	return true
}

func (m *pathMatcher) holds(p *paths) bool {
	if m.prefix {
		return hasSegments(p.sent, m.want.sent) || hasSegments(p.strict, m.want.strict) || hasSegments(p.loose, m.want.loose)
	}
	return p.sent == m.want.sent || p.strict == m.want.strict || p.loose == m.want.loose
}

// hasSegments reports whether path begins with the segments of prefix, which does not end in a slash.
func hasSegments(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || prefix == "" || path[len(prefix)] == '/')
}

func (m *headerMatcher) holds(r *Request) bool {
	if m.name == hostHeader {
		return strings.EqualFold(r.Host, m.value)
	}
	lines, _ := r.lines(m.name)
	return slices.Contains(lines, m.value)
}
