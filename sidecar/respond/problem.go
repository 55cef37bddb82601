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

func denyHTTP(to Asker, d Denial) Answer {
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
	a := Answer{Status: http.StatusTooManyRequests, Fields: []Field{
		{"Content-Type", "application/problem+json"},
		{"Retry-After", strconv.FormatInt(d.retrySeconds(), 10)},
		{"Cache-Control", "no-store"},
		{rateLimitedHeader, "true"},
	}}
	a.body(to, append(body, '\n'))
	return a
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
