// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// cacheOptions keep of each object only what the operator looks at: it watches every pod of the cluster.
func cacheOptions(o Options) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: slimPod},
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {
				FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.Secret),
			}}},
			// By name alone: the operator has no right to list others.
			&corev1.ConfigMap{}: named(o.CAConfigMap),
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   named(o.Webhook),
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: named(o.Webhook),
		},
	}
}

func named(name string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
}

// slimPod drops what only a kubelet needs. Names, ports, labels, owners and the status stay.
func slimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	p.ManagedFields = nil
	delete(p.Annotations, v1alpha1.AnnotationOriginal)
	p.Spec.Volumes, p.Spec.Affinity, p.Spec.Tolerations, p.Spec.TopologySpreadConstraints = nil, nil, nil, nil
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i] = corev1.Container{Name: list[i].Name, Image: list[i].Image, Ports: list[i].Ports, RestartPolicy: list[i].RestartPolicy}
		}
	}
	return p, nil
}
