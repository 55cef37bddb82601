// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/limiter"
)

// Middleware puts a limit in front of a handler. Its fields must not change once Wrap was called.
type Middleware struct {
	// Decide answers for each request. It is called concurrently. Required; see ByKey.
	Decide func(*http.Request) limiter.Decision

	// Name is the policy's name in headers and problem documents, "default" if empty. It may hold printable ASCII.
	Name string

	// Window is the time that the limit is told to apply to (w of RateLimit-Policy), not told if it is below a second.
	// For a token bucket that is the time in which it fills: rate.Duration(burst).
	Window time.Duration

	// Denied writes the answer to a denied request. Status headers such as Retry-After are set already. If it is nil, a
	// problem document is sent.
	Denied http.Handler
}

// ByKey returns a decision that takes one token from the bucket of the request's key.
func ByKey(k *limiter.Keyed, key func(*http.Request) string) func(*http.Request) limiter.Decision {
	return func(r *http.Request) limiter.Decision { return k.Take(key(r), 1) }
}

// Wrap returns a handler that passes allowed requests on to next.
func (m Middleware) Wrap(next http.Handler) http.Handler {
	if m.Name == "" {
		m.Name = "default"
	}
	name := quoted(m.Name)
	if m.Denied == nil {
		m.Denied = problem(m.Name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := m.Decide(r)
		setHeaders(w.Header(), name, m.Window, d)
		if d.Allowed {
			next.ServeHTTP(w, r)
			return
		}
		m.Denied.ServeHTTP(w, r)
	})
}

// setHeaders tells about a decision. Retry-After is in whole seconds, rounded up and at least 1, and absent where
// waiting does not help.
func setHeaders(h http.Header, name string, window time.Duration, d limiter.Decision) {
	policy := name + ";q=" + strconv.FormatUint(d.Limit.Whole(), 10)
	if w := int64(window / time.Second); w > 0 {
		policy += ";w=" + strconv.FormatInt(w, 10)
	}
	left := name + ";r=" + strconv.FormatUint(d.Remaining.Whole(), 10)
	if !d.Allowed && d.RetryAfter != limiter.Never {
		after := strconv.FormatInt(seconds(d.RetryAfter), 10)
		left += ";t=" + after
		h.Set("Retry-After", after)
	}
	h.Add("RateLimit-Policy", policy)
	h.Add("RateLimit", left)
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 1)
}

// quoted is a Structured Fields string (RFC 9651).
func quoted(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c > 0x7e: // has no place in the field
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
