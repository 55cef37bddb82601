// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quotav1

// Probes are the probes and hooks of app containers that the sidecar runs for the kubelet, by container and kind. The
// injector writes them into EnvProbes as JSON; the kubelet asks for PathProbe + "container/kind" on PortAdmin.
type Probes map[string]Probe

// ProbeKind says what a probe is for. It is the last part of its path.
type ProbeKind string

// Kinds of probes, and of lifecycle hooks, which the kubelet runs in the same way.
const (
	ProbeStartup   ProbeKind = "startup"
	ProbeReadiness ProbeKind = "readiness"
	ProbeLiveness  ProbeKind = "liveness"
	HookPostStart  ProbeKind = "postStart"
	HookPreStop    ProbeKind = "preStop"
)

// ProbePath names a probe of a container, both in Probes and below PathProbe.
func ProbePath(container string, kind ProbeKind) string { return container + "/" + string(kind) }

// Probe is what the app's author wrote, with every port a number. Exactly one of HTTPGet, TCPSocket and GRPC is set.
type Probe struct {
	HTTPGet   *HTTPProbe `json:"httpGet,omitempty"`
	TCPSocket *TCPProbe  `json:"tcpSocket,omitempty"`
	GRPC      *GRPCProbe `json:"grpc,omitempty"`
	// TimeoutSeconds is how long the app may take; 0 = 1 second. Hooks have no limit but the kubelet's patience.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// HTTPProbe is a GET, as the kubelet sends it.
type HTTPProbe struct {
	Port   int32  `json:"port"`
	Scheme string `json:"scheme,omitempty"` // HTTP when empty, or HTTPS, whose certificate is not verified
	Path   string `json:"path,omitempty"`   // may have a query; "/" when empty
	// Headers are sent in this order; Host among them is the request's host.
	Headers []HTTPHeader `json:"headers,omitempty"`
}

// HTTPHeader is one header of a probe.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TCPProbe succeeds when the port accepts a connection.
type TCPProbe struct {
	Port int32 `json:"port"`
}

// GRPCProbe is a call of grpc.health.v1.Health/Check; it succeeds when the service is SERVING.
type GRPCProbe struct {
	Port    int32  `json:"port"`
	Service string `json:"service,omitempty"`
}
