// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/url"
	"strings"
	"testing"
)

func TestReadPathNormalises(t *testing.T) {
	for name, tc := range map[string]struct{ sent, strict, loose string }{
		"a plain path stays":                        {"/v1/items", "/v1/items", "/v1/items"},
		"an empty path is the root":                 {"", "/", "/"},
		"a trailing slash stays":                    {"/v1/", "/v1/", "/v1/"},
		"doubled slashes become one":                {"//v1///x", "/v1/x", "/v1/x"},
		"dot segments go":                           {"/a/./b/../v1", "/a/v1", "/a/v1"},
		"dot segments do not climb above the root":  {"/../../v1", "/v1", "/v1"},
		"a final dot segment leaves a slash":        {"/v1/x/..", "/v1/", "/v1/"},
		"unreserved characters are decoded":         {"/%76%31/x%2Ey", "/v1/x.y", "/v1/x.y"},
		"encoded dots are dot segments":             {"/a/%2e%2E/v1", "/v1", "/v1"},
		"an encoded slash divides in one reading":   {"/v1%2fx", "/v1%2Fx", "/v1/x"},
		"other encodings are written alike":         {"/a%3fb", "/a%3Fb", "/a?b"},
		"a cut encoding stays":                      {"/a%2", "/a%2", "/a%2"},
		"a wrong encoding stays":                    {"/a%zz", "/a%zz", "/a%zz"},
		"parameters go in one reading":              {"/v1;x=1/y;z", "/v1;x=1/y;z", "/v1/y"},
		"backslashes are slashes in one reading":    {`/v1\x%5cy`, `/v1\x%5Cy`, "/v1/x/y"},
		"a fragment is cut in one reading":          {"/v1#x", "/v1#x", "/v1"},
		"encoded climbing is seen":                  {"/a%2F..%2Fv1/x", "/a%2F..%2Fv1/x", "/v1/x"},
		"a path of another form gets a slash":       {"*", "/*", "/*"},
		"dots inside of a segment stay":             {"/a..b/.hidden", "/a..b/.hidden", "/a..b/.hidden"},
		"an encoded percent sign is not read twice": {"/%2576", "/%2576", "/%76"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readPath(tc.sent); got.strict != tc.strict || got.loose != tc.loose {
				t.Errorf("readPath(%q) = %q, %q, want %q, %q", tc.sent, got.strict, got.loose, tc.strict, tc.loose)
			}
		})
	}
}

// Whatever is sent, the readings are absolute, free of dot segments and stay as they are when read again.
func FuzzReadPath(f *testing.F) {
	for _, s := range []string{"", "/", "/v1/x", "//a/../b", "/%2e%2e/%2F;a=b/.", "*", "a/b", "/%", "/a%2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		p := readPath(sent)
		for _, reading := range []string{p.strict, p.loose} {
			if !strings.HasPrefix(reading, "/") {
				t.Fatalf("%q reads as %q", sent, reading)
			}
			for segment := range strings.SplitSeq(reading[1:], "/") {
				if segment == "." || segment == ".." {
					t.Fatalf("%q reads as %q", sent, reading)
				}
			}
			if strings.Contains(reading, "//") {
				t.Fatalf("%q reads as %q", sent, reading)
			}
		}
		if _, err := url.PathUnescape(sent); err != nil {
			return // what is left of a malformed encoding may meet what follows
		}
		if again := readPath(p.strict); again.strict != p.strict {
			t.Fatalf("%q reads as %q, which reads as %q", sent, p.strict, again.strict)
		}
	})
}
