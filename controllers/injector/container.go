// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

const (
	volumeIdentity = "headgate-identity"
	volumeRecords  = "headgate-records"
	userID         = 65532
	tokenSeconds   = 3600
)

// container is the sidecar: native (it starts before the app and ends after it), under the restricted Pod Security
// Standard, ready only with a share in hand.
func container(cfg Config, pairs []portPair, guaranteed bool) corev1.Container {
	c := corev1.Container{
		Name:            quotav1.ContainerName,
		Image:           cfg.Image,
		ImagePullPolicy: cfg.PullPolicy,
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			{Name: quotav1.EnvOperator, Value: cfg.Operator},
			{Name: quotav1.EnvPorts, Value: encode(pairs)},
			{Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")},
			{Name: "POD_NAME", ValueFrom: field("metadata.name")},
			{Name: quotav1.EnvPod, Value: "$(POD_NAMESPACE)/$(POD_NAME)"},
		},
		Ports:          []corev1.ContainerPort{{Name: "headgate-admin", ContainerPort: quotav1.PortAdmin, Protocol: corev1.ProtocolTCP}},
		Resources:      resources(cfg.Resources, guaranteed),
		StartupProbe:   probe(quotav1.PathStarted, 60),
		ReadinessProbe: probe(quotav1.PathReady+"?wait=900ms", 3),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/headgate-sidecar", "drain"}},
		}},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(userID)),
			RunAsGroup:               new(int64(userID)),
			RunAsNonRoot:             new(true),
			ReadOnlyRootFilesystem:   new(true),
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: volumeIdentity, MountPath: quotav1.PathIdentity, ReadOnly: true}},
	}
	if _, limited := c.Resources.Limits[corev1.ResourceMemory]; limited {
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: quotav1.ContainerName, Resource: "limits.memory"},
		}})
	}
	if cfg.RecordHostPath != "" {
		const folder = "/var/run/headgate-records"
		c.Env = append(c.Env, corev1.EnvVar{Name: quotav1.EnvRecord, Value: folder})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeRecords, MountPath: folder})
	}
	return c
}

func volumes(cfg Config) []corev1.Volume {
	v := []corev1.Volume{{Name: volumeIdentity, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: quotav1.TokenAudience, ExpirationSeconds: new(int64(tokenSeconds)), Path: path.Base(quotav1.FileToken),
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: cfg.CAConfigMap},
				Items:                []corev1.KeyToPath{{Key: path.Base(quotav1.FileCA), Path: path.Base(quotav1.FileCA)}},
				Optional:             new(true), // the pod must start even if the operator has never been here
			}},
		},
	}}}}
	if cfg.RecordHostPath != "" {
		v = append(v, corev1.Volume{Name: volumeRecords, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: cfg.RecordHostPath, Type: new(corev1.HostPathDirectory)},
		}})
	}
	return v
}

func field(p string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: p}}
}

func probe(at string, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: at, Port: intstr.FromInt32(quotav1.PortAdmin)}},
		PeriodSeconds:    1,
		TimeoutSeconds:   2,
		FailureThreshold: failures,
	}
}

// guaranteedCPU is the least that a sidecar with a limit gets: with less, its start alone would be throttled for seconds.
var guaranteedCPU = resource.MustParse("100m")

// resources gives the sidecar limits equal to its requests where the pod is Guaranteed, so that its class stays.
func resources(r corev1.ResourceRequirements, guaranteed bool) corev1.ResourceRequirements {
	out := *r.DeepCopy()
	if !guaranteed {
		return out
	}
	out.Limits = corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		q, ok := r.Limits[name]
		if !ok {
			q = r.Requests[name]
			if name == corev1.ResourceCPU && q.Cmp(guaranteedCPU) < 0 {
				q = guaranteedCPU
			}
		}
		out.Limits[name] = q.DeepCopy()
	}
	out.Requests = out.Limits.DeepCopy()
	return out
}

// guaranteed reports whether every container has limits for CPU and memory and requests nothing else.
func guaranteed(spec *corev1.PodSpec) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, ok := list[i].Resources.Limits[name]
				if !ok {
					return false
				}
				if request, ok := list[i].Resources.Requests[name]; ok && request.Cmp(limit) != 0 {
					return false
				}
			}
		}
	}
	return true
}
