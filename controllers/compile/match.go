// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

func compileMatch(m *v1alpha1.Match) (*quotav1.Match, error) {
	out := &quotav1.Match{Methods: slices.Sorted(slices.Values(m.Methods)), Hosts: slices.Sorted(slices.Values(m.Hosts))}
	for i, h := range m.Hosts {
		if !hostName.MatchString(h) {
			return nil, fmt.Errorf("hosts[%d]: %q is no name of a host in small letters without a port: write for example shop.example or *.shop.example", i, h)
		}
	}
	if m.Path.Value != "" {
		path, err := compilePath(&m.Path)
		if err != nil {
			return nil, fmt.Errorf("path.%w", err)
		}
		out.Path = path
	}
	for i := range m.Headers {
		h, err := compileHeader(&m.Headers[i])
		if err != nil {
			return nil, fmt.Errorf("headers[%d].%w", i, err)
		}
		out.Headers = append(out.Headers, h)
	}
	for i, q := range m.Query {
		kind, err := compileValue(q.Type, q.Value)
		if err != nil {
			return nil, fmt.Errorf("query[%d].%w", i, err)
		}
		out.Query = append(out.Query, &quotav1.QueryMatch{Name: q.Name, Value: q.Value, Type: kind})
	}
	if m.GRPC != (v1alpha1.GRPCMatch{}) {
		out.Grpc, out.Path = true, grpcPath(m.GRPC)
	}
	slices.SortFunc(out.Headers, func(a, b *quotav1.HeaderMatch) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Query, func(a, b *quotav1.QueryMatch) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

var hostName = regexp.MustCompile(`^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// grpcPath is where gRPC has its calls: /package.Service/Method.
func grpcPath(g v1alpha1.GRPCMatch) *quotav1.PathMatch {
	switch {
	case g.Method == "":
		return &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: "/" + g.Service}
	case g.Service == "":
		return &quotav1.PathMatch{Type: quotav1.PathMatch_TEMPLATE, Value: "/{service}/" + g.Method}
	}
	return &quotav1.PathMatch{Type: quotav1.PathMatch_EXACT, Value: "/" + g.Service + "/" + g.Method}
}

func compilePath(p *v1alpha1.PathMatch) (*quotav1.PathMatch, error) {
	out := &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: p.Value}
	switch p.Type {
	case v1alpha1.PathExact:
		out.Type = quotav1.PathMatch_EXACT
	case v1alpha1.PathRegularExpression:
		out.Type = quotav1.PathMatch_REGULAR_EXPRESSION
		if err := checkPattern(p.Value); err != nil {
			return nil, err
		}
		return out, nil
	case v1alpha1.PathTemplate:
		out.Type = quotav1.PathMatch_TEMPLATE
		if _, err := variables(p.Value); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(p.Value, "/") {
		return nil, fmt.Errorf("value: %q does not begin with a slash: write for example /v1/orders", p.Value)
	}
	return out, nil
}

var variable = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}$`)

// variables are the names of a template's variables.
func variables(template string) ([]string, error) {
	var out []string
	segments := strings.Split(strings.TrimPrefix(template, "/"), "/")
	for i, s := range segments {
		if !strings.ContainsAny(s, "{}") {
			continue
		}
		m := variable.FindStringSubmatch(s)
		switch {
		case m == nil:
			return nil, fmt.Errorf("value: segment %q is neither text nor a variable: write for example /users/{user}/orders", s)
		case slices.Contains(out, m[1]):
			return nil, fmt.Errorf("value: variable %s stands twice: give each a name of its own, such as /users/{user}/orders/{order}", m[1])
		case m[2] != "" && i < len(segments)-1:
			return nil, fmt.Errorf("value: {%s...} stands for all that follows, so nothing may follow: write for example /files/{path...}", m[1])
		}
		out = append(out, m[1])
	}
	return out, nil
}

func compileHeader(h *v1alpha1.HeaderMatch) (*quotav1.HeaderMatch, error) {
	kind, err := compileValue(h.Type, h.Value)
	if err != nil {
		return nil, err
	}
	return &quotav1.HeaderMatch{Name: strings.ToLower(h.Name), Value: h.Value, Type: kind}, nil
}

func compileValue(kind v1alpha1.ValueMatchType, value string) (quotav1.HeaderMatch_Type, error) {
	switch kind {
	case v1alpha1.ValuePresent:
		return quotav1.HeaderMatch_PRESENT, nil
	case v1alpha1.ValueRegularExpression:
		return quotav1.HeaderMatch_REGULAR_EXPRESSION, checkPattern(value)
	}
	return quotav1.HeaderMatch_EXACT, nil
}

func checkPattern(value string) error {
	if _, err := regexp.Compile(value); err != nil {
		return fmt.Errorf("value: %q is no regular expression of RE2 (%w): write for example [a-z]+-[0-9]+", value, err)
	}
	return nil
}

func compileExempt(x *v1alpha1.Exempt) (*quotav1.Exempt, error) {
	if len(x.CIDRs)+len(x.Paths)+len(x.Headers) == 0 {
		return nil, nil
	}
	out := &quotav1.Exempt{}
	for i, c := range x.CIDRs {
		prefix, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("cidrs[%d]: %q is no range of addresses: write for example 10.0.0.0/8", i, c)
		}
		out.Cidrs = append(out.Cidrs, prefix.Masked().String())
	}
	for i := range x.Paths {
		p, err := compilePath(&x.Paths[i])
		if err != nil {
			return nil, fmt.Errorf("paths[%d].%w", i, err)
		}
		out.Paths = append(out.Paths, p)
	}
	for i := range x.Headers {
		h, err := compileHeader(&x.Headers[i])
		if err != nil {
			return nil, fmt.Errorf("headers[%d].%w", i, err)
		}
		out.Headers = append(out.Headers, h)
	}
	return out, nil
}
