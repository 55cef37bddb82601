// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selecting returns the Services that select any of the pods whose labels are given.
func Selecting(services []corev1.Service, pods ...map[string]string) []corev1.Service {
	var out []corev1.Service
	for i := range services {
		if len(services[i].Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(services[i].Spec.Selector)
		if slices.ContainsFunc(pods, func(p map[string]string) bool { return selector.Matches(labels.Set(p)) }) {
			out = append(out, services[i])
		}
	}
	return out
}
