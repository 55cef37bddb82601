// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"encoding/json"
	"net/http"
)

// problemDocument is the body of RFC 9457, of the type that the RateLimit header draft registers.
type problemDocument struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	ViolatedPolicies []string `json:"violated-policies"`
}

// problem answers 429 with a problem document that names the policy.
func problem(name string) http.Handler {
	// Strings and numbers always marshal.
	body, _ := json.Marshal(problemDocument{
		Type:             "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:            "Request cannot be satisfied as assigned quota has been exceeded",
		Status:           http.StatusTooManyRequests,
		ViolatedPolicies: []string{name},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		// A client that has gone away has nobody to tell.
		_, _ = w.Write(body)
	})
}
