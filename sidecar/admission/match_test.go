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

func TestMatches(t *testing.T) {
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
		"Host is a header too": {match: headers("host", "SHOP.example"), path: "/", want: true},
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
			p := readPath(r.Path)
			if got := m.holds(r, &p); got != tc.want {
				t.Errorf("holds = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMatchesThatCannotBeCompiledAreRefused(t *testing.T) {
	for name, m := range map[string]*quotav1.Match{
		"a path without a slash":         exact("v1"),
		"an empty path":                  prefix(""),
		"a path of unknown type":         {Path: &quotav1.PathMatch{Value: "/", Type: 99}},
		"an empty method":                {Methods: []string{""}},
		"a header without a name":        headers("", "x"),
		"a header match of unknown type": {Headers: []*quotav1.HeaderMatch{{Name: "x", Type: 99}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compileMatch(m); err == nil {
				t.Error("compiled, want an error: it would silently be something else")
			}
		})
	}
}
