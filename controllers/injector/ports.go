// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
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

// AppPorts reads the app's ports out of an injected pod's annotation.
func AppPorts(annotation string) []int32 {
	var out []int32
	for word := range strings.SplitSeq(annotation, ",") {
		_, app, _ := strings.Cut(word, "=")
		if n, err := strconv.ParseUint(app, 10, 16); err == nil {
			out = append(out, int32(n))
		}
	}
	return out
}

// takePorts finds the ports to intercept, gives each its listener, and changes the pod as the mode demands.
func takePorts(spec *corev1.PodSpec, plan Plan, before *original) ([]portPair, error) {
	var pairs []portPair
	switch plan.Mode {
	case v1alpha1.None:
		return nil, nil
	case v1alpha1.Redirect:
		pairs = redirected(spec, plan.Ports)
		if len(pairs) == 0 {
			return nil, fmt.Errorf("%w: no port to redirect: declare the container's port (ports: [{containerPort: 8080}]) or list it (injection.ports: [\"8080\"])", ErrNotInjectable)
		}
	default:
		pairs = renamed(spec, plan.Ports, before)
		if len(pairs) == 0 {
			return nil, fmt.Errorf("%w: no TCP container port is named%s: name the port (ports: [{name: http, containerPort: 8080}]) and let the Service target the name (targetPort: http), or write injection.mode: Redirect",
				ErrNotInjectable, oneOf(plan.Ports))
		}
	}
	if len(pairs) > quotav1.MaxInbound {
		return nil, fmt.Errorf("%w: %d ports are more than the %d that a sidecar serves: list the ones to limit in injection.ports", ErrNotInjectable, len(pairs), quotav1.MaxInbound)
	}
	return pairs, nil
}

func isTCP(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

// wanted reports whether a declared port is to be intercepted.
func wanted(p *corev1.ContainerPort, ports []string) bool {
	return isTCP(p.Protocol) && (len(ports) == 0 || p.Name != "" && slices.Contains(ports, p.Name) ||
		slices.Contains(ports, strconv.Itoa(int(p.ContainerPort))))
}

// renamed gives the sidecar's numbers to the app's named TCP ports, and keeps probes and hooks that used a name pointed at
// the app itself. Those that use the number reach the app as before. So none ever spends a token.
func renamed(spec *corev1.PodSpec, ports []string, before *original) []portPair {
	var pairs []portPair
	for _, c := range serving(spec) {
		moved := map[string]int32{}
		for j := range c.Ports {
			p := &c.Ports[j]
			if p.Name == "" || !wanted(p, ports) {
				continue
			}
			pair := portPair{listen: int32(quotav1.PortInbound + len(pairs)), app: p.ContainerPort}
			pairs = append(pairs, pair)
			moved[p.Name] = p.ContainerPort
			p.ContainerPort = pair.listen
		}
		pinHandlers(c, moved, before)
	}
	return pairs
}

// redirected finds the numbers to redirect; the pod's ports stay as they are. A number that is listed needs no declaration.
func redirected(spec *corev1.PodSpec, ports []string) []portPair {
	var numbers []int32
	for _, c := range serving(spec) {
		for j := range c.Ports {
			if wanted(&c.Ports[j], ports) {
				numbers = append(numbers, c.Ports[j].ContainerPort)
			}
		}
	}
	for _, p := range ports {
		if n, err := strconv.ParseUint(p, 10, 16); err == nil && n > 0 {
			numbers = append(numbers, int32(n))
		}
	}
	slices.Sort(numbers)
	var pairs []portPair
	for _, n := range slices.Compact(numbers) {
		pairs = append(pairs, portPair{listen: int32(quotav1.PortInbound + len(pairs)), app: n})
	}
	return pairs
}

// pinHandlers replaces the name of a moved port by the app's own number in every probe and hook of the container.
func pinHandlers(c *corev1.Container, moved map[string]int32, before *original) {
	for _, h := range handlers(c) {
		pin := func(p *intstr.IntOrString) {
			if n, ok := moved[p.StrVal]; ok && p.Type == intstr.String {
				before.asked(quotav1.ProbePath(c.Name, h.kind), h.question)
				*p = intstr.FromInt32(n)
			}
		}
		if h.HTTPGet != nil {
			pin(&h.HTTPGet.Port)
		}
		if h.TCPSocket != nil {
			pin(&h.TCPSocket.Port)
		}
	}
}
