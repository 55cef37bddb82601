// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/sidecar/admission"
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

func denyHTTP(to Asker, d denial) Answer {
	a := Answer{Status: http.StatusTooManyRequests}
	if status := d.style.GetStatus(); status != 0 {
		a.Status = int(status)
	}
	kind, body := d.content(a.Status)
	a.Fields = append(a.Fields, Field{"Content-Type", kind})
	if !d.hopeless() {
		a.Fields = append(a.Fields, Field{"Retry-After", strconv.FormatInt(d.retrySeconds(), 10)})
	}
	a.Fields = append(a.Fields, Field{"Cache-Control", "no-store"}, Field{rateLimitedHeader, "true"})
	a.Fields = append(a.Fields, d.fields...)
	for _, f := range d.style.GetFields() {
		a.Fields = append(a.Fields, Field{f.GetName(), f.GetValue()})
	}
	a.body(to, body)
	return a
}

// content is the body of a denial, and its type.
func (d *denial) content(status int) (kind string, body []byte) {
	if template := d.style.GetBody(); template != "" {
		kind = d.style.GetContentType()
		if kind == "" {
			kind = "text/plain; charset=utf-8"
		}
		return kind, []byte(strings.NewReplacer(
			"${limit}", d.limits[0],
			"${retryAfterSeconds}", strconv.FormatInt(d.retrySeconds(), 10),
		).Replace(template))
	}
	body, err := json.Marshal(problem{
		Type:             quotaExceeded,
		Title:            "Request cannot be satisfied as assigned quota has been exceeded",
		Status:           status,
		Detail:           d.detail(),
		ViolatedPolicies: d.limits,
	})
	if err != nil { // strings and an int always marshal
		body = nil
	}
	return "application/problem+json", append(body, '\n')
}

// detail is the sentence that people read.
func (d *denial) detail() string {
	limits := strings.Join(d.limits, ", ")
	switch d.refusal {
	case admission.KeyMissing:
		return "limit " + d.limits[0] + " counts by a key that the request lacks, and denies such requests"
	case admission.CostTooHigh:
		return "the request costs more than limit " + d.limits[0] + " ever admits at once: make it smaller"
	}
	return "over limit " + limits + "; try again in " + strconv.FormatInt(d.retrySeconds(), 10) + " s"
}
