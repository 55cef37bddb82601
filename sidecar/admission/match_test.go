// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"
	"testing"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func exact(path string) *quotav1.Match {
	return &quotav1.Match{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_EXACT, Value: path}}
}

func prefix(path string) *quotav1.Match {
	return &quotav1.Match{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_PREFIX, Value: path}}
}

func headers(kv ...string) *quotav1.Match {
	m := &quotav1.Match{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &quotav1.HeaderMatch{Name: kv[i], Value: kv[i+1], Type: quotav1.HeaderMatch_EXACT})
	}
	return m
}

func template(path string) *quotav1.Match {
	return &quotav1.Match{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_TEMPLATE, Value: path}}
}

func pattern(path string) *quotav1.Match {
	return &quotav1.Match{Path: &quotav1.PathMatch{Type: quotav1.PathMatch_REGULAR_EXPRESSION, Value: path}}
}

func header(kind quotav1.HeaderMatch_Type, name, value string) *quotav1.Match {
	return &quotav1.Match{Headers: []*quotav1.HeaderMatch{{Type: kind, Name: name, Value: value}}}
}

func query(kind quotav1.HeaderMatch_Type, name, value string) *quotav1.Match {
	return &quotav1.Match{Query: []*quotav1.QueryMatch{{Type: kind, Name: name, Value: value}}}
}

func TestMatches(t *testing.T) {
	const (
		isExact = quotav1.HeaderMatch_EXACT
		regex   = quotav1.HeaderMatch_REGULAR_EXPRESSION
		present = quotav1.HeaderMatch_PRESENT
	)
	asked := func(q string) func(*Request) { return func(r *Request) { r.Query = q } }
	of := func(host string) func(*Request) { return func(r *Request) { r.Host = host } }
	typed := func(value string) func(*Request) {
		return func(r *Request) { r.Header.(http.Header).Set("Content-Type", value) }
	}
	hosts := func(names ...string) *quotav1.Match { return &quotav1.Match{Hosts: names} }
	for name, tc := range map[string]struct {
		match *quotav1.Match
		path  string
		set   func(*Request)
		want  bool
	}{
		"an empty match holds for everything": {match: &quotav1.Match{}, path: "/x", want: true},

		"an exact path holds for itself":               {match: exact("/v1"), path: "/v1", want: true},
		"an exact path does not hold below":            {match: exact("/v1"), path: "/v1/x"},
		"an exact path minds the trailing slash":       {match: exact("/v1"), path: "/v1/"},
		"an exact path cannot be stepped around":       {match: exact("/v1"), path: "/x/../%76%31", want: true},
		"an exact path minds the case":                 {match: exact("/v1"), path: "/V1"},
		"a policy's own spelling is normalised":        {match: exact("/a//%76"), path: "/a/v", want: true},
		"a policy's encoded slash is not a slash":      {match: exact("/a%2Fb"), path: "/a/b"},
		"a policy's encoded slash is an encoded slash": {match: exact("/a%2fb"), path: "/a%2Fb", want: true},

		"a prefix holds for itself":                                           {match: prefix("/v1"), path: "/v1", want: true},
		"a prefix holds with a slash":                                         {match: prefix("/v1"), path: "/v1/", want: true},
		"a prefix holds below":                                                {match: prefix("/v1"), path: "/v1/x/y", want: true},
		"a prefix ends at a segment's end":                                    {match: prefix("/v1"), path: "/v10"},
		"a prefix with a slash is the same prefix":                            {match: prefix("/v1/"), path: "/v1", want: true},
		"a prefix with a slash ends at a segment's end":                       {match: prefix("/v1/"), path: "/v10"},
		"the root's prefix holds for everything":                              {match: prefix("/"), path: "/x", want: true},
		"the root's prefix holds for OPTIONS *":                               {match: prefix("/"), path: "*", want: true},
		"the bytes as sent count too, for applications that do not normalise": {match: prefix("/v1"), path: "/v1/../v2", want: true},
		"an encoded slash does not step around a prefix":                      {match: prefix("/v1"), path: "/v1%2Fx", want: true},
		"a parameter does not step around a prefix":                           {match: prefix("/v1"), path: "/v1;a=b/x", want: true},
		"doubled slashes do not step around a prefix":                         {match: prefix("/v1"), path: "//v1//x", want: true},
		"climbing does not step around a prefix":                              {match: prefix("/v1"), path: "/v2/../v1/x", want: true},
		"encoded climbing does not step around a prefix":                      {match: prefix("/v1"), path: "/v2%2f%2e%2e%2Fv1/x", want: true},
		"a prefix of encoded letters is the same prefix":                      {match: prefix("/%76%31"), path: "/v1/x", want: true},
		"a prefix that is absent holds for an empty path":                     {match: prefix("/"), path: "", want: true},

		"a method holds":                  {match: &quotav1.Match{Methods: []string{"GET", "POST"}}, path: "/", want: true},
		"another method does not":         {match: &quotav1.Match{Methods: []string{"POST"}}, path: "/"},
		"methods are told by their case":  {match: &quotav1.Match{Methods: []string{"get"}}, path: "/"},
		"a header holds in any case":      {match: headers("x-TIER", "free"), path: "/", want: true},
		"a header's value minds the case": {match: headers("x-tier", "FREE"), path: "/"},
		"an absent header does not hold":  {match: headers("x-other", ""), path: "/"},
		"all headers must hold":           {match: headers("x-tier", "free", "x-other", "1"), path: "/"},
		"a second line of a header counts": {
			match: headers("x-tier", "gold"), path: "/", want: true,
			set: func(r *Request) { r.Header.(http.Header).Add("X-Tier", "gold") },
		},
		"Host is a header too":                              {match: headers("host", "SHOP.example"), path: "/", want: true},
		"a template holds for one segment":                  {match: template("/users/{user}/orders"), path: "/users/7/orders", want: true},
		"a template does not hold for two":                  {match: template("/users/{user}/orders"), path: "/users/7/8/orders"},
		"a template does not hold for none":                 {match: template("/users/{user}"), path: "/users/"},
		"a template does not hold below":                    {match: template("/users/{user}"), path: "/users/7/x"},
		"a template's rest holds for all that follows":      {match: template("/files/{path...}"), path: "/files/a/b/c", want: true},
		"a template's rest is not empty":                    {match: template("/files/{path...}"), path: "/files/"},
		"a template cannot be stepped around by encoding":   {match: template("/users/{user}"), path: "/%75sers//7", want: true},
		"a template cannot be stepped around by parameters": {match: template("/users/{user}"), path: "/users;x/7", want: true},
		"a template of variables alone holds":               {match: template("/{a}/{b}"), path: "/x/y", want: true},

		"an expression holds for the whole path":        {match: pattern("/v[12]/.*"), path: "/v2/x", want: true},
		"an expression does not hold for a part":        {match: pattern("/v[12]"), path: "/v2/x"},
		"an expression of two ways is anchored in both": {match: pattern("/a|/b"), path: "/bc"},
		"an expression cannot be stepped around":        {match: pattern("/v1/.*"), path: "/x/../v1/y", want: true},

		"a header's expression holds for the whole value": {match: header(regex, "x-tier", "fr.e"), path: "/", want: true},
		"a header's expression is not a search":           {match: header(regex, "x-tier", "r"), path: "/"},
		"a header that is present":                        {match: header(present, "x-tier", ""), path: "/", want: true},
		"a header that is not":                            {match: header(present, "x-none", ""), path: "/"},

		"a query parameter holds":                    {match: query(isExact, "plan", "free"), path: "/", set: asked("a=1&plan=free"), want: true},
		"a query parameter is decoded":               {match: query(isExact, "plan", "free & easy"), path: "/", set: asked("pl%61n=free+%26%20easy"), want: true},
		"a repeated query parameter holds by one":    {match: query(isExact, "plan", "free"), path: "/", set: asked("plan=gold&plan=free"), want: true},
		"a query parameter of another value":         {match: query(isExact, "plan", "free"), path: "/", set: asked("plan=gold")},
		"a query parameter without a value":          {match: query(present, "plan", ""), path: "/", set: asked("plan"), want: true},
		"a query parameter that is not there":        {match: query(present, "plan", ""), path: "/", set: asked("x=plan")},
		"a query parameter's expression":             {match: query(regex, "page", "[0-9]+"), path: "/", set: asked("page=12"), want: true},
		"a query that is encoded wrongly stays sent": {match: query(isExact, "plan", "%zz"), path: "/", set: asked("plan=%zz"), want: true},

		"a host holds without its port and in any case": {match: hosts("shop.example"), path: "/", set: of("Shop.Example:8080"), want: true},
		"a host holds with a dot at its end":            {match: hosts("shop.example"), path: "/", set: of("shop.example."), want: true},
		"another host does not":                         {match: hosts("shop.example"), path: "/", set: of("notshop.example")},
		"a wildcard holds below":                        {match: hosts("*.shop.example"), path: "/", set: of("a.b.shop.example"), want: true},
		"a wildcard does not hold for the name itself":  {match: hosts("*.shop.example"), path: "/", set: of("shop.example")},
		"a wildcard ends at a label":                    {match: hosts("*.shop.example"), path: "/", set: of("evilshop.example")},
		"an IPv6 host has its brackets":                 {match: hosts("[::1]"), path: "/", set: of("[::1]:80"), want: true},

		"a call of gRPC":              {match: &quotav1.Match{Grpc: true, Path: prefix("/shop.Cart").Path}, path: "/shop.Cart/Add", set: typed("application/grpc+proto"), want: true},
		"what only looks like a call": {match: &quotav1.Match{Grpc: true, Path: prefix("/shop.Cart").Path}, path: "/shop.Cart/Add", set: typed("application/grpc-web")},
		"fields are joined by and": {
			match: &quotav1.Match{Path: prefix("/v1").Path, Methods: []string{"POST"}}, path: "/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := compileMatch(tc.match)
			if err != nil {
				t.Fatal(err)
			}
			r := &Request{Method: "GET", Path: tc.path, Host: "shop.example", Header: http.Header{"X-Tier": {"free"}}}
			if tc.set != nil {
				tc.set(r)
			}
			reading := read(r)
			if got := m.holds(&reading); got != tc.want {
				t.Errorf("holds = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMatchesThatCannotBeCompiledAreRefused(t *testing.T) {
	for name, m := range map[string]*quotav1.Match{
		"a path without a slash":                    exact("v1"),
		"an empty path":                             prefix(""),
		"a path of unknown type":                    {Path: &quotav1.PathMatch{Value: "/", Type: 99}},
		"an empty method":                           {Methods: []string{""}},
		"a header without a name":                   headers("", "x"),
		"a path expression that does not compile":   pattern("/(a"),
		"a template with a brace in a segment":      template("/users/u{user}"),
		"a template with a variable twice":          template("/{a}/{a}"),
		"a template with a rest in the middle":      template("/{a...}/b"),
		"a template with a bad name":                template("/{1a}"),
		"a header expression that does not compile": header(quotav1.HeaderMatch_REGULAR_EXPRESSION, "x", "("),
		"a query match without a name":              query(quotav1.HeaderMatch_EXACT, "", "x"),
		"a host that is a star":                     {Hosts: []string{"*"}},
		"a host that is a star within":              {Hosts: []string{"*shop"}},
		"a header match of unknown type":            {Headers: []*quotav1.HeaderMatch{{Name: "x", Type: 99}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compileMatch(m); err == nil {
				t.Error("compiled, want an error: it would silently be something else")
			}
		})
	}
}
