// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// problem is the problem document of RFC 9457 with the type that the IETF's rate limit draft registers.
type problem struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail"`
	ViolatedPolicies []string `json:"violated-policies"`
}

const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

func denyHTTP(w http.ResponseWriter, r *http.Request, d Denial) {
	seconds := d.retrySeconds()
	body, err := json.Marshal(problem{
		Type:             quotaExceeded,
		Title:            "Request cannot be satisfied as assigned quota has been exceeded",
		Status:           http.StatusTooManyRequests,
		Detail:           detail(d),
		ViolatedPolicies: d.Limits,
	})
	if err != nil { // strings and an int always marshal
		body = nil
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	h.Set("Cache-Control", "no-store")
	h.Set(rateLimitedHeader, "true")
	w.WriteHeader(http.StatusTooManyRequests)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has gone away needs no answer
	}
}

// detail is the sentence that people read.
func detail(d Denial) string {
	var b strings.Builder
	b.WriteString("over limit ")
	b.WriteString(strings.Join(d.Limits, ", "))
	b.WriteString("; try again in ")
	b.WriteString(strconv.FormatInt(d.retrySeconds(), 10))
	b.WriteString(" s")
	return b.String()
}
