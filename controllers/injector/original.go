// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Original returns a pod as far as a plan depends on it, with the ports that it had before it was injected: so that the
// plan for a pod is the same before and after. A pod without the sidecar is returned as it is.
func Original(pod *corev1.Pod) *corev1.Pod {
	if !Injected(&pod.Spec) {
		return pod
	}
	out := pod.DeepCopy()
	out.Spec.InitContainers = slices.DeleteFunc(out.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == quotav1.ContainerName || c.Name == quotav1.ContainerRedirect
	})
	apps := map[int32]int32{}
	for word := range strings.SplitSeq(pod.Annotations[v1alpha1.AnnotationPorts], ",") {
		listen, app, _ := strings.Cut(word, "=")
		l, err1 := strconv.ParseUint(listen, 10, 16)
		a, err2 := strconv.ParseUint(app, 10, 16)
		if err1 == nil && err2 == nil {
			apps[int32(l)] = int32(a)
		}
	}
	for _, c := range serving(&out.Spec) {
		for j := range c.Ports {
			if app, ok := apps[c.Ports[j].ContainerPort]; ok {
				c.Ports[j].ContainerPort = app
			}
		}
	}
	return out
}
