// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Bounds of what is taken from the environment.
const (
	maxText    = 128 << 10
	maxProbes  = 256
	maxHeaders = 64
	maxTimeout = 3600 // seconds
)

// Parse reads the probes of a pod from their JSON. Nothing stands for none.
func Parse(text string) (quotav1.Probes, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("probes: %d bytes are more than %d", len(text), maxText)
	}
	var probes quotav1.Probes
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&probes); err != nil {
		return nil, fmt.Errorf(`probes: %w; write for example {"app/readiness":{"httpGet":{"port":8080,"path":"/healthz"}}}`, err)
	}
	if len(probes) > maxProbes {
		return nil, fmt.Errorf("probes: %d are more than %d", len(probes), maxProbes)
	}
	for name := range probes {
		p := probes[name]
		if err := check(name, &p); err != nil {
			return nil, fmt.Errorf("probes: %s: %w", name, err)
		}
	}
	return probes, nil
}

func check(name string, p *quotav1.Probe) error {
	container, kind, ok := strings.Cut(name, "/")
	if !ok || container == "" || !known(quotav1.ProbeKind(kind)) {
		return errors.New("the name is not container/kind, such as app/readiness")
	}
	if p.TimeoutSeconds < 0 || p.TimeoutSeconds > maxTimeout {
		return fmt.Errorf("timeoutSeconds %d is not between 0 and %d", p.TimeoutSeconds, maxTimeout)
	}
	switch {
	case p.HTTPGet != nil && p.TCPSocket == nil && p.GRPC == nil:
		return checkHTTP(p.HTTPGet)
	case p.TCPSocket != nil && p.HTTPGet == nil && p.GRPC == nil:
		return checkPort(p.TCPSocket.Port)
	case p.GRPC != nil && p.HTTPGet == nil && p.TCPSocket == nil:
		return checkPort(p.GRPC.Port)
	}
	return errors.New("exactly one of httpGet, tcpSocket and grpc must be set")
}

func known(kind quotav1.ProbeKind) bool {
	switch kind {
	case quotav1.ProbeStartup, quotav1.ProbeReadiness, quotav1.ProbeLiveness, quotav1.HookPostStart, quotav1.HookPreStop:
		return true
	}
	return false
}

func checkPort(port int32) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	return nil
}

func checkHTTP(h *quotav1.HTTPProbe) error {
	if err := checkPort(h.Port); err != nil {
		return err
	}
	if h.Scheme != "" && h.Scheme != schemeHTTP && h.Scheme != schemeHTTPS {
		return fmt.Errorf("scheme %q is not HTTP or HTTPS", h.Scheme)
	}
	if len(h.Headers) > maxHeaders {
		return fmt.Errorf("%d headers are more than %d", len(h.Headers), maxHeaders)
	}
	for _, x := range h.Headers {
		if !httpguts.ValidHeaderFieldName(x.Name) || !httpguts.ValidHeaderFieldValue(x.Value) {
			return fmt.Errorf("header %q cannot be sent", x.Name)
		}
	}
	return nil
}
