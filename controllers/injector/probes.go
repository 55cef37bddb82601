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

// question is what a probe or a hook asks over the network.
type question struct {
	HTTPGet   *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC      *corev1.GRPCAction      `json:"grpc,omitempty"`
}

// handler is a probe or a hook of a container: what it asks, and where to write another question.
type handler struct {
	kind quotav1.ProbeKind
	question
	timeout int32
	ask     func(question)
}

// handlers lists the probes and hooks of a container that use its network.
func handlers(c *corev1.Container) []handler {
	var out []handler
	for kind, p := range map[quotav1.ProbeKind]*corev1.Probe{
		quotav1.ProbeStartup: c.StartupProbe, quotav1.ProbeReadiness: c.ReadinessProbe, quotav1.ProbeLiveness: c.LivenessProbe,
	} {
		if p != nil && p.Exec == nil {
			out = append(out, handler{kind: kind, question: question{p.HTTPGet, p.TCPSocket, p.GRPC}, timeout: p.TimeoutSeconds,
				ask: func(q question) {
					p.ProbeHandler = corev1.ProbeHandler{HTTPGet: q.HTTPGet, TCPSocket: q.TCPSocket, GRPC: q.GRPC}
				}})
		}
	}
	if c.Lifecycle == nil {
		return out
	}
	for kind, h := range map[quotav1.ProbeKind]*corev1.LifecycleHandler{
		quotav1.HookPostStart: c.Lifecycle.PostStart, quotav1.HookPreStop: c.Lifecycle.PreStop,
	} {
		if h != nil && h.Exec == nil {
			out = append(out, handler{kind: kind, question: question{HTTPGet: h.HTTPGet}, // tcpSocket is refused by the kubelet
				ask: func(q question) { *h = corev1.LifecycleHandler{HTTPGet: q.HTTPGet} }})
		}
	}
	return out
}

// takeProbes points the probes and hooks that would meet a redirected port at the sidecar's probe port, and returns what the
// sidecar shall ask the app instead, as JSON. Probes of other ports, of other hosts, and commands stay as they are.
func takeProbes(spec *corev1.PodSpec, pairs []portPair, before *original) string {
	probes := quotav1.Probes{}
	for _, c := range serving(spec) {
		for _, h := range handlers(c) {
			p, ok := carried(c, h, pairs)
			if !ok {
				continue
			}
			name := quotav1.ProbePath(c.Name, h.kind)
			probes[name] = p
			before.asked(name, h.question)
			h.ask(question{HTTPGet: &corev1.HTTPGetAction{Path: quotav1.PathProbe + name, Port: intstr.FromInt32(quotav1.PortAdmin)}})
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
	case h.HTTPGet != nil && h.HTTPGet.Host == "":
		port = numberOf(c, h.HTTPGet.Port)
		out.HTTPGet = &quotav1.HTTPProbe{Port: port, Path: h.HTTPGet.Path}
		if h.HTTPGet.Scheme != corev1.URISchemeHTTP {
			out.HTTPGet.Scheme = string(h.HTTPGet.Scheme)
		}
		for _, x := range h.HTTPGet.HTTPHeaders {
			out.HTTPGet.Headers = append(out.HTTPGet.Headers, quotav1.HTTPHeader{Name: x.Name, Value: x.Value})
		}
	case h.TCPSocket != nil && h.TCPSocket.Host == "":
		port = numberOf(c, h.TCPSocket.Port)
		out.TCPSocket = &quotav1.TCPProbe{Port: port}
	case h.GRPC != nil:
		port = h.GRPC.Port
		out.GRPC = &quotav1.GRPCProbe{Port: port}
		if h.GRPC.Service != nil {
			out.GRPC.Service = *h.GRPC.Service
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
