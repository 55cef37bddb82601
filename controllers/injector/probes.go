// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// handler is a probe or a hook of a container: what it asks, and where to write another question.
type handler struct {
	kind    quotav1.ProbeKind
	http    *corev1.HTTPGetAction
	tcp     *corev1.TCPSocketAction
	grpc    *corev1.GRPCAction
	timeout int32
	ask     func(*corev1.HTTPGetAction)
}

// handlers lists the probes and hooks of a container that use its network.
func handlers(c *corev1.Container) []handler {
	var out []handler
	for kind, p := range map[quotav1.ProbeKind]*corev1.Probe{
		quotav1.ProbeStartup: c.StartupProbe, quotav1.ProbeReadiness: c.ReadinessProbe, quotav1.ProbeLiveness: c.LivenessProbe,
	} {
		if p != nil && p.Exec == nil {
			out = append(out, handler{kind: kind, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC, timeout: p.TimeoutSeconds,
				ask: func(get *corev1.HTTPGetAction) { p.ProbeHandler = corev1.ProbeHandler{HTTPGet: get} }})
		}
	}
	if c.Lifecycle == nil {
		return out
	}
	for kind, h := range map[quotav1.ProbeKind]*corev1.LifecycleHandler{
		quotav1.HookPostStart: c.Lifecycle.PostStart, quotav1.HookPreStop: c.Lifecycle.PreStop,
	} {
		if h != nil && h.Exec == nil {
			out = append(out, handler{kind: kind, http: h.HTTPGet, // tcpSocket is refused by the kubelet
				ask: func(get *corev1.HTTPGetAction) { *h = corev1.LifecycleHandler{HTTPGet: get} }})
		}
	}
	return out
}

// takeProbes points the probes and hooks that would meet a redirected port at the sidecar's probe port, and returns what the
// sidecar shall ask the app instead, as JSON. Probes of other ports, of other hosts, and commands stay as they are.
func takeProbes(spec *corev1.PodSpec, pairs []portPair) string {
	probes := quotav1.Probes{}
	for _, c := range serving(spec) {
		for _, h := range handlers(c) {
			p, ok := carried(c, h, pairs)
			if !ok {
				continue
			}
			name := quotav1.ProbePath(c.Name, h.kind)
			probes[name] = p
			h.ask(&corev1.HTTPGetAction{Path: quotav1.PathProbe + name, Port: intstr.FromInt32(quotav1.PortAdmin)})
		}
	}
	if len(probes) == 0 {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(probes); err != nil {
		panic(fmt.Sprintf("injector: marshal probes: %v", err)) // strings and numbers only
	}
	// The kubelet replaces $(NAME) in the environment; a doubled $ stands for itself.
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "$", "$$")
}

// carried is what the sidecar asks in place of the kubelet; false when the kubelet can go on asking itself.
func carried(c *corev1.Container, h handler, pairs []portPair) (quotav1.Probe, bool) {
	out := quotav1.Probe{TimeoutSeconds: h.timeout}
	var port int32
	switch {
	case h.http != nil && h.http.Host == "":
		port = numberOf(c, h.http.Port)
		out.HTTPGet = &quotav1.HTTPProbe{Port: port, Path: h.http.Path}
		if h.http.Scheme != corev1.URISchemeHTTP {
			out.HTTPGet.Scheme = string(h.http.Scheme)
		}
		for _, x := range h.http.HTTPHeaders {
			out.HTTPGet.Headers = append(out.HTTPGet.Headers, quotav1.HTTPHeader{Name: x.Name, Value: x.Value})
		}
	case h.tcp != nil && h.tcp.Host == "":
		port = numberOf(c, h.tcp.Port)
		out.TCPSocket = &quotav1.TCPProbe{Port: port}
	case h.grpc != nil:
		port = h.grpc.Port
		out.GRPC = &quotav1.GRPCProbe{Port: port}
		if h.grpc.Service != nil {
			out.GRPC.Service = *h.grpc.Service
		}
	}
	return out, slices.ContainsFunc(pairs, func(p portPair) bool { return p.app == port })
}

// numberOf resolves a port as the kubelet does: a name among the container's own ports.
func numberOf(c *corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}
