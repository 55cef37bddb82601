// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
)

// Original returns a pod as far as a plan depends on it, with the ports that it had before it was injected: so that the
// plan for a pod is the same before and after. A pod without the sidecar is returned as it is. Eject returns all of it, where
// all of the pod is known.
func Original(pod *corev1.Pod) *corev1.Pod {
	if !Injected(&pod.Spec) {
		return pod
	}
	out := pod.DeepCopy()
	takeOut(out)
	return out
}

// takeOut removes the containers of an injection and gives the app its ports back.
func takeOut(pod *corev1.Pod) {
	pod.Spec.InitContainers = slices.DeleteFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
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
	for _, c := range serving(&pod.Spec) {
		for j := range c.Ports {
			if app, ok := apps[c.Ports[j].ContainerPort]; ok {
				c.Ports[j].ContainerPort = app
			}
		}
	}
}

// original is what an injection replaces and the pod does not say elsewhere. It stands in an annotation of the pod.
type original struct {
	// Asks are the questions of probes and hooks that were changed, by container and kind.
	Asks map[string]question `json:"asks,omitempty"`
	// Sleep names the containers that had no preStop hook.
	Sleep []string `json:"sleep,omitempty"`
	// PullSecrets are those that the pod did not have.
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Mesh is the annotation that the sidecar's port was added to.
	Mesh string `json:"mesh,omitempty"`
}

// asked notes what a probe or a hook asks, before that is changed.
func (o *original) asked(name string, q question) {
	if o.Asks == nil {
		o.Asks = map[string]question{}
	}
	o.Asks[name] = question{HTTPGet: q.HTTPGet.DeepCopy(), TCPSocket: q.TCPSocket.DeepCopy(), GRPC: q.GRPC.DeepCopy()}
}

// write notes it on the pod.
func (o *original) write(pod *corev1.Pod) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		panic(fmt.Sprintf("injector: marshal original: %v", err)) // strings and numbers only
	}
	if text := strings.TrimSpace(b.String()); text != "{}" {
		pod.Annotations[v1alpha1.AnnotationOriginal] = text
	}
}

// readOriginal reads what a pod says of itself before it was injected.
func readOriginal(pod *corev1.Pod) (*original, error) {
	o := &original{}
	text := pod.Annotations[v1alpha1.AnnotationOriginal]
	if text == "" {
		return o, nil
	}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationOriginal, err)
	}
	return o, nil
}
