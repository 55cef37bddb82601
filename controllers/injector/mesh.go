// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Meshes that redirect a pod's traffic themselves, and reach the app over loopback: around a redirect of ours.
const (
	istio   = "Istio"
	linkerd = "Linkerd"
)

// Mesh names the service mesh whose sidecar a pod has or will get, or returns nothing. The pod's own word counts before
// that of its namespace.
func Mesh(pod *corev1.Pod, ns metav1.ObjectMeta) string {
	if name := meshIn(&pod.Spec); name != "" {
		return name
	}
	ambient := first(pod.Labels["istio.io/dataplane-mode"], ns.Labels["istio.io/dataplane-mode"])
	switch first(pod.Labels["sidecar.istio.io/inject"], pod.Annotations["sidecar.istio.io/inject"]) {
	case "true":
		return istio
	case "":
		if ns.Labels["istio-injection"] == "enabled" || first(pod.Labels["istio.io/rev"], ns.Labels["istio.io/rev"]) != "" && ns.Labels["istio-injection"] != "disabled" {
			return istio
		}
	}
	if ambient == "ambient" {
		return istio
	}
	switch first(pod.Annotations["linkerd.io/inject"], pod.Labels["linkerd.io/inject"], ns.Annotations["linkerd.io/inject"]) {
	case "enabled", "ingress":
		return linkerd
	}
	return ""
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// meshIn names the mesh whose containers a pod has.
func meshIn(spec *corev1.PodSpec) string {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		switch {
		case slices.Contains([]string{"istio-proxy", "istio-init", "istio-validation"}, c.Name):
			return istio
		case slices.Contains([]string{"linkerd-proxy", "linkerd-init", "linkerd-network-validator"}, c.Name):
			return linkerd
		}
	}
	return ""
}

// exemptFromMesh keeps the kubelet's way to the sidecar's probe port clear of a mesh that wants client certificates. It
// returns the annotation that it added the port to.
func exemptFromMesh(pod *corev1.Pod, mesh string) string {
	key := map[string]string{istio: "traffic.sidecar.istio.io/excludeInboundPorts", linkerd: "config.linkerd.io/skip-inbound-ports"}[mesh]
	own := strconv.Itoa(quotav1.PortAdmin)
	have := pod.Annotations[key]
	if key == "" || slices.Contains(strings.Split(have, ","), own) {
		return ""
	}
	pod.Annotations[key] = strings.TrimPrefix(have+","+own, ",")
	return key
}

func besideMesh(name string) error {
	return fmt.Errorf("%w: mode Redirect does not work beside the sidecar of %s, which reaches the app around it: name the port (ports: [{name: http, containerPort: 8080}]), let the Services target the name (targetPort: http) and write injection.mode: NamedPort, or keep %s out of this pod",
		ErrNotInjectable, name, name)
}
