// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers/injector"
)

func TestAMeshIsSeenBeforeItsSidecarIs(t *testing.T) {
	type words = map[string]string
	for name, tc := range map[string]struct {
		podLabels, podAnnotations, labels, annotations words
		container                                      string
		want                                           string
	}{
		"nothing":                                     {},
		"a namespace of Istio":                        {labels: words{"istio-injection": "enabled"}, want: "Istio"},
		"a namespace of a revision of Istio":          {labels: words{"istio.io/rev": "stable"}, want: "Istio"},
		"a namespace that Istio leaves alone":         {labels: words{"istio-injection": "disabled", "istio.io/rev": "stable"}},
		"a pod that asks for Istio":                   {podLabels: words{"sidecar.istio.io/inject": "true"}, want: "Istio"},
		"a pod that asks for Istio in the old way":    {podAnnotations: words{"sidecar.istio.io/inject": "true"}, want: "Istio"},
		"a pod that refuses Istio":                    {podLabels: words{"sidecar.istio.io/inject": "false"}, labels: words{"istio-injection": "enabled"}},
		"a namespace of Istio's ambient mode":         {labels: words{"istio.io/dataplane-mode": "ambient"}, want: "Istio"},
		"a pod that refuses Istio's ambient mode":     {podLabels: words{"istio.io/dataplane-mode": "none"}, labels: words{"istio.io/dataplane-mode": "ambient"}},
		"a pod with Istio's proxy":                    {container: "istio-proxy", want: "Istio"},
		"a pod with Istio's init container":           {container: "istio-init", want: "Istio"},
		"a namespace of Linkerd":                      {annotations: words{"linkerd.io/inject": "enabled"}, want: "Linkerd"},
		"a pod that refuses Linkerd":                  {podAnnotations: words{"linkerd.io/inject": "disabled"}, annotations: words{"linkerd.io/inject": "enabled"}},
		"a pod that asks for Linkerd":                 {podAnnotations: words{"linkerd.io/inject": "ingress"}, want: "Linkerd"},
		"a pod with Linkerd's proxy":                  {container: "linkerd-proxy", want: "Linkerd"},
		"a pod with a container of a name like those": {container: "istio-proxy-exporter"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.podLabels, Annotations: tc.podAnnotations}}
			if tc.container != "" {
				pod.Spec.InitContainers = []corev1.Container{{Name: tc.container}}
			}
			if got := injector.Mesh(pod, metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
