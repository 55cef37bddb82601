// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admission"
)

// CheckRequest describes a request to decide. It spends tokens as the request itself would.
type CheckRequest struct {
	Method string `json:"method"` // GET when empty
	// Path is as a client would send it, with the query.
	Path    string              `json:"path"`
	Host    string              `json:"host"`
	Headers map[string][]string `json:"headers"`
	Peer    string              `json:"peer"` // address of the client, without a port
}

// CheckResponse is the decision.
type CheckResponse struct {
	Allowed bool `json:"allowed"`
	// Limits are the limits that denied, as policy/limit.
	Limits []string `json:"limits,omitempty"`
	// RetryAfterSeconds is when asking again makes sense; absent when nobody knows.
	RetryAfterSeconds float64 `json:"retryAfterSeconds,omitempty"`
	// Tightest is the matching limit with the least left; absent when none matched.
	Tightest *CheckTightest `json:"tightest,omitempty"`
}

// CheckTightest is how near the request was to a denial.
type CheckTightest struct {
	Limit        string  `json:"limit"`
	Burst        float64 `json:"burst"`
	Remaining    float64 `json:"remaining"`
	ResetSeconds float64 `json:"resetSeconds"`
}

const maxCheck = 256 << 10

func (a *Admin) check(w http.ResponseWriter, r *http.Request) {
	in, err := readCheck(http.MaxBytesReader(w, r.Body, maxCheck))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	d, ok := a.options.Engine.DecideWait(r.Context(), a.options.Clock(), in)
	if !ok {
		return // nobody reads the answer
	}
	d.Ticket.End() // nobody tells a door when a request is over
	if d.Unavailable {
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "nothing to decide by: no snapshot in force"})
		return
	}
	out := CheckResponse{Allowed: d.Allowed, Limits: d.Names()}
	if d.RetryAfter > 0 && d.RetryAfter != limiter.Never {
		out.RetryAfterSeconds = d.RetryAfter.Seconds()
	}
	if t := d.Tightest; t != nil {
		out.Tightest = &CheckTightest{Limit: t.Name(), Burst: tokens(d.Limit), Remaining: tokens(d.Remaining), ResetSeconds: seconds(d.Reset())}
	}
	writeJSON(w, http.StatusOK, out)
}

// explain answers as admission.Engine.Explain does.
func (a *Admin) explain(w http.ResponseWriter, r *http.Request) {
	in, err := readCheck(http.MaxBytesReader(w, r.Body, maxCheck))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	x, ok := a.options.Engine.Explain(in, a.options.Clock())
	if !ok {
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "nothing to decide by: no snapshot in force"})
		return
	}
	writeJSON(w, http.StatusOK, x)
}

func readCheck(body interface{ Read([]byte) (int, error) }) (*admission.Request, error) {
	var in CheckRequest
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if !strings.HasPrefix(in.Path, "/") {
		return nil, fmt.Errorf("path %q does not begin with a slash", in.Path)
	}
	out := &admission.Request{Method: in.Method, Host: in.Host}
	if out.Method == "" {
		out.Method = http.MethodGet
	}
	out.Path, out.Query, _ = strings.Cut(in.Path, "?")
	headers := http.Header{}
	for name, values := range in.Headers {
		for _, value := range values {
			headers.Add(name, value)
		}
	}
	out.Header = headers
	if in.Peer != "" {
		peer, err := netip.ParseAddr(in.Peer)
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		out.Peer = peer
	}
	return out, nil
}

func tokens(t limiter.Tokens) float64 { return float64(t) / float64(limiter.Token) }

// seconds is a duration for people; an endless one is left out.
func seconds(d time.Duration) float64 {
	if d == limiter.Never {
		return 0
	}
	return d.Seconds()
}
