// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

const (
	// fresh is how long an answer of the app stands for the next callers, so that nobody makes the app work more than the
	// kubelet could (five times a second), and nobody who asks often keeps the kubelet from its answer.
	fresh = 200 * time.Millisecond
	// probePatience is Kubernetes' own default; hookPatience only bounds what the kubelet has given up.
	probePatience = time.Second
	hookPatience  = 10 * time.Minute
)

// runner asks the app once and returns a status of HTTP: 200 for yes, 400 or more for no.
type runner func(ctx context.Context, from caller) int

// caller is what the app may see of who asks.
type caller struct {
	podIP string // as the kubelet dialled it: the host of the probe, as it would have been without the sidecar
	agent string
}

// Handler answers for the probes of one pod. It is safe for concurrent use.
type Handler struct {
	probes map[string]*flight
}

// New returns the handler for probes that Parse has accepted.
func New(probes quotav1.Probes) *Handler {
	h := &Handler{probes: map[string]*flight{}}
	for name, p := range probes {
		h.probes[name] = &flight{run: newRunner(p), patience: patience(name, p)}
	}
	return h
}

func newRunner(p quotav1.Probe) runner {
	switch {
	case p.HTTPGet != nil:
		return httpRunner(*p.HTTPGet)
	case p.GRPC != nil:
		return grpcRunner(*p.GRPC)
	default:
		return tcpRunner(*p.TCPSocket)
	}
}

func patience(name string, p quotav1.Probe) time.Duration {
	_, kind, _ := strings.Cut(name, "/")
	switch {
	case quotav1.ProbeKind(kind) == quotav1.HookPostStart, quotav1.ProbeKind(kind) == quotav1.HookPreStop:
		return hookPatience
	case p.TimeoutSeconds > 0:
		return time.Duration(p.TimeoutSeconds) * time.Second
	}
	return probePatience
}

// ServeHTTP runs the probe that the path names. Only names that the pod has are known, whatever else the path holds.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := h.probes[strings.TrimPrefix(r.URL.Path, quotav1.PathProbe)]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	status, ok := f.do(r.Context(), callerOf(r))
	if !ok {
		return // nobody listens any more
	}
	w.WriteHeader(status)
}

// callerOf reads who asks. The host is not taken from the request: a caller must not choose what the app sees.
func callerOf(r *http.Request) caller {
	c := caller{podIP: "127.0.0.1", agent: "kube-probe"}
	if address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if host, _, err := net.SplitHostPort(address.String()); err == nil {
			c.podIP = host
		}
	}
	if agent := r.UserAgent(); strings.HasPrefix(agent, "kube-") && len(agent) < 64 {
		c.agent = agent
	}
	return c
}
