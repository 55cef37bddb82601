// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// portPair says which port of the sidecar stands before which port of the app.
type portPair struct{ listen, app int32 }

func encode(pairs []portPair) string {
	s := make([]string, len(pairs))
	for i, p := range pairs {
		s[i] = fmt.Sprintf("%d=%d", p.listen, p.app)
	}
	return strings.Join(s, ",")
}

// takePorts gives the sidecar's numbers to the app's named TCP ports (all, or those listed), and keeps probes and hooks
// that used a name pointed at the app itself, so that they never spend a token.
func takePorts(spec *corev1.PodSpec, names []string) []portPair {
	var pairs []portPair
	for i := range spec.Containers {
		c := &spec.Containers[i]
		moved := map[string]int32{}
		for j := range c.Ports {
			p := &c.Ports[j]
			tcp := p.Protocol == "" || p.Protocol == corev1.ProtocolTCP
			if p.Name == "" || !tcp || len(names) > 0 && !slices.Contains(names, p.Name) {
				continue
			}
			pair := portPair{listen: int32(quotav1.PortInbound + len(pairs)), app: p.ContainerPort}
			pairs = append(pairs, pair)
			moved[p.Name] = p.ContainerPort
			p.ContainerPort = pair.listen
		}
		pinHandlers(c, moved)
	}
	return pairs
}

// pinHandlers replaces the name of a moved port by the app's own number in every probe and hook of the container.
func pinHandlers(c *corev1.Container, moved map[string]int32) {
	pin := func(p *intstr.IntOrString) {
		if n, ok := moved[p.StrVal]; ok && p.Type == intstr.String {
			*p = intstr.FromInt32(n)
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil && probe.HTTPGet != nil {
			pin(&probe.HTTPGet.Port)
		}
		if probe != nil && probe.TCPSocket != nil {
			pin(&probe.TCPSocket.Port)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil && hook.HTTPGet != nil {
			pin(&hook.HTTPGet.Port)
		}
		if hook != nil && hook.TCPSocket != nil {
			pin(&hook.TCPSocket.Port)
		}
	}
}
