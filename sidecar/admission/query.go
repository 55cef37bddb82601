// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"iter"
	"net/url"
	"strings"
)

// parameters yields the names and values of a query, decoded, in the order in which they were sent. What is encoded wrongly
// is yielded as it was sent: an application may read it so.
func parameters(query string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for pair := range strings.SplitSeq(query, "&") {
			if pair == "" {
				continue
			}
			name, value, _ := strings.Cut(pair, "=")
			if !yield(decodeQuery(name), decodeQuery(value)) {
				return
			}
		}
	}
}

// firstParameter is the first value of a name.
func firstParameter(query, name string) (string, bool) {
	if query == "" {
		return "", false
	}
	for n, value := range parameters(query) {
		if n == name {
			return value, true
		}
	}
	return "", false
}

func decodeQuery(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// cookie is the first value of a cookie's name in the lines of the Cookie header (RFC 6265, 5.4).
func cookie(lines []string, name string) (string, bool) {
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			n, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
			if ok && n == name {
				return strings.Trim(value, `"`), true
			}
		}
	}
	return "", false
}
