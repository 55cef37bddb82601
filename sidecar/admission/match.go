// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// matcher is one compiled match: it holds when every part that is present holds.
type matcher struct {
	path    *pathMatcher
	methods []string
	headers []headerMatcher
	query   []queryMatcher
	hosts   []string // exact names, and ".shop.example" for those below
	grpc    bool
}

const hostHeader = "Host"

func compileMatch(m *quotav1.Match) (matcher, error) {
	out := matcher{grpc: m.GetGrpc()}
	if p := m.GetPath(); p != nil {
		path, err := compilePath(p)
		if err != nil {
			return out, err
		}
		out.path = path
	}
	for _, method := range m.GetMethods() {
		if method == "" {
			return out, fmt.Errorf("empty method")
		}
		out.methods = append(out.methods, method)
	}
	for _, h := range m.GetHeaders() {
		compiled, err := compileHeader(h)
		if err != nil {
			return out, err
		}
		out.headers = append(out.headers, compiled)
	}
	for _, q := range m.GetQuery() {
		compiled, err := compileQuery(q)
		if err != nil {
			return out, err
		}
		out.query = append(out.query, compiled)
	}
	for _, host := range m.GetHosts() {
		name, wild := strings.CutPrefix(host, "*")
		if name == "" || wild && name[0] != '.' {
			return out, fmt.Errorf("host %q is neither a name nor *.name", host)
		}
		out.hosts = append(out.hosts, strings.ToLower(name))
	}
	return out, nil
}

func (m *matcher) holds(r *reading) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, r.Method) {
		return false
	}
	if m.grpc && !r.grpc() {
		return false
	}
	if m.path != nil && !m.path.holds(r) {
		return false
	}
	if len(m.hosts) > 0 && !m.holdsHost(r.host()) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].holds(r) {
			return false
		}
	}
	for i := range m.query {
		if !m.query[i].holds(r) {
			return false
		}
	}
	return true
}

func (m *matcher) holdsHost(host string) bool {
	for _, want := range m.hosts {
		if host == want || want[0] == '.' && len(host) > len(want) && strings.HasSuffix(host, want) {
			return true
		}
	}
	return false
}
