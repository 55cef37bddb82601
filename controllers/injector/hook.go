// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// keepAlive gives a container without a preStop hook one that keeps it alive while clients still come: a native sidecar's own
// SIGTERM comes only after the app has ended. The hook asks the sidecar, which knows of the last client, and takes no more than
// half of the pod's grace, so that the app has the other half. An image of the policy's own may be of an earlier release, which
// cannot be asked: there the kubelet sleeps. It reports whether the container had none.
func keepAlive(c *corev1.Container, plan Plan, grace *int64) bool {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	if c.Lifecycle.PreStop != nil {
		return false
	}
	seconds := int64(plan.Sleep)
	if plan.Image != "" {
		c.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}
		return true
	}
	within := int64(corev1.DefaultTerminationGracePeriodSeconds) / 2
	if grace != nil {
		within = *grace / 2
	}
	c.Lifecycle.PreStop = &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: fmt.Sprintf("%s?for=%ds&within=%ds", quotav1.PathQuiet, seconds, max(within, seconds)),
		Port: intstr.FromInt32(quotav1.PortAdmin),
	}}
	return true
}

// keptAlive reports whether a container has the hook that keepAlive gives.
func keptAlive(c *corev1.Container) bool {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.HTTPGet == nil {
		return false
	}
	get := c.Lifecycle.PreStop.HTTPGet
	return get.Port.IntVal == quotav1.PortAdmin && strings.HasPrefix(get.Path, quotav1.PathQuiet+"?")
}
