// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	"net/http"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/respond"
)

// admittedKey leads from a request's context to the decision that admitted it.
type admittedKey struct{}

func withAdmitted(r *http.Request, d *admission.Decision) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), admittedKey{}, d))
}

// answered tells the client where it stands, and the ticket what the request cost.
func answered(r *http.Response, now func() limiter.Time) {
	d, ok := r.Request.Context().Value(admittedKey{}).(*admission.Decision)
	if !ok {
		return
	}
	for _, f := range respond.Standing(d) {
		r.Header.Add(f.Name, f.Value)
	}
	if !d.Ticket.Wants() {
		return
	}
	d.Ticket.Answered(r.Header, now())
	if d.Ticket.Wants() && r.Body != nil {
		r.Body = &trailing{ReadCloser: r.Body, response: r, ticket: d.Ticket, now: now}
	}
}

// trailing is a body after which the trailer tells the cost.
type trailing struct {
	io.ReadCloser
	response *http.Response
	ticket   *admission.Ticket
	now      func() limiter.Time
}

func (t *trailing) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if err == io.EOF {
		t.ticket.Answered(t.response.Trailer, t.now())
	}
	return n, err
}
