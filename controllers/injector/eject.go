// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Eject returns the pod, or template of pods, as it was before Inject: without the sidecar, its volumes, marks and redirect, with
// the app's own ports, probes and hooks. It changes nothing of its argument. A pod without the sidecar loses only the marks.
func Eject(pod *corev1.Pod) (*corev1.Pod, error) {
	out := pod.DeepCopy()
	if Injected(&out.Spec) {
		before, err := readOriginal(out)
		if err != nil {
			return nil, err
		}
		takeOut(out)
		out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == volumeIdentity || v.Name == volumeRecords
		})
		out.Spec.ImagePullSecrets = slices.DeleteFunc(out.Spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool {
			return slices.Contains(before.PullSecrets, s.Name)
		})
		for _, c := range serving(&out.Spec) {
			if err := restore(c, before); err != nil {
				return nil, err
			}
		}
		if before.Mesh != "" {
			withdraw(out.Annotations, before.Mesh)
		}
	}
	delete(out.Labels, v1alpha1.LabelInjected)
	for _, name := range []string{v1alpha1.AnnotationMode, v1alpha1.AnnotationPorts, v1alpha1.AnnotationRollout, v1alpha1.AnnotationOriginal, v1alpha1.AnnotationInjection} {
		delete(out.Annotations, name)
	}
	return out, nil
}

// restore gives a container its own probes and hooks back.
func restore(c *corev1.Container, before *original) error {
	for _, h := range handlers(c) {
		name := quotav1.ProbePath(c.Name, h.kind)
		q, known := before.Asks[name]
		switch {
		case known:
			h.ask(q)
		case h.HTTPGet != nil && h.HTTPGet.Path == quotav1.PathProbe+name:
			return fmt.Errorf("container %s: its %s asks the sidecar, and annotation %s does not say what it asked before: write it into the manifest anew", c.Name, h.kind, v1alpha1.AnnotationOriginal)
		}
	}
	if c.Lifecycle == nil {
		return nil
	}
	if slices.Contains(before.Sleep, c.Name) || keptAlive(c) {
		c.Lifecycle.PreStop = nil
	}
	if *c.Lifecycle == (corev1.Lifecycle{}) {
		c.Lifecycle = nil
	}
	return nil
}

// withdraw takes the sidecar's port out of a list in an annotation.
func withdraw(annotations map[string]string, key string) {
	own := strconv.Itoa(quotav1.PortAdmin)
	left := slices.DeleteFunc(strings.Split(annotations[key], ","), func(p string) bool { return p == own })
	if len(left) == 0 {
		delete(annotations, key)
		return
	}
	annotations[key] = strings.Join(left, ",")
}
