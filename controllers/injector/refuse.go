// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
)

// Refuse says why a pod must not get the sidecar, whatever the policies say, or returns nil. The redirect program looks for
// the same once more, from inside: a redirect in the network of a node would cut the node off.
func Refuse(pod *corev1.Pod) error {
	switch {
	case target.OptedOut(pod.Labels):
		return fmt.Errorf("%w: label %s is false: take the label away", ErrNotInjectable, v1alpha1.LabelInject)
	case pod.Spec.HostNetwork:
		return fmt.Errorf("%w: hostNetwork pods share the node's ports: set hostNetwork: false, or put the limit before a workload that has a network of its own", ErrNotInjectable)
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || pod.Annotations[configSource] == "file":
		return fmt.Errorf("%w: a static pod cannot be changed: run it as a DaemonSet", ErrNotInjectable)
	case pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows:
		return fmt.Errorf("%w: the sidecar does not run on Windows: put the limit before a workload on Linux", ErrNotInjectable)
	}
	for _, c := range serving(&pod.Spec) {
		for _, p := range c.Ports {
			if !Injected(&pod.Spec) && ours(p.ContainerPort) {
				return fmt.Errorf("%w: container %s uses port %d, which the sidecar needs (%d to %d, %d and %d): let the app use another one",
					ErrNotInjectable, c.Name, p.ContainerPort, quotav1.PortInbound, quotav1.PortInbound+quotav1.MaxInbound-1, quotav1.PortAdmin, quotav1.PortLocal)
			}
		}
	}
	return nil
}

// configSource is where the kubelet notes that a pod is of its own files.
const configSource = "kubernetes.io/config.source"

func ours(port int32) bool {
	return port >= quotav1.PortInbound && port < quotav1.PortInbound+quotav1.MaxInbound || port == quotav1.PortAdmin || port == quotav1.PortLocal
}
