// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// redirectContainer is the init container of mode Redirect: the sidecar's own image, run once before it, with the one
// capability that changing the pod's network rules needs. Capabilities reach a process of root only.
func redirectContainer(sidecar *corev1.Container, pairs []portPair) corev1.Container {
	return corev1.Container{
		Name:            quotav1.ContainerRedirect,
		Image:           sidecar.Image,
		ImagePullPolicy: sidecar.ImagePullPolicy,
		Args:            []string{"redirect"},
		Env: []corev1.EnvVar{
			{Name: quotav1.EnvPorts, Value: encode(pairs)},
			// By these the program knows that it is in a pod's network, not in a node's.
			{Name: quotav1.EnvHostIPs, ValueFrom: field("status.hostIPs")},
			{Name: quotav1.EnvPodIPs, ValueFrom: field("status.podIPs")},
			{Name: quotav1.EnvSource, ValueFrom: field("metadata.annotations['" + configSource + "']")},
		},
		Resources: *sidecar.Resources.DeepCopy(),
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(0)),
			RunAsGroup:               new(int64(0)),
			RunAsNonRoot:             new(false),
			ReadOnlyRootFilesystem:   new(true),
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}
