// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestAnAppHasHalfOfThePodsGraceToItself(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds int32
		grace   *int64
		path    string
	}{
		"Kubernetes' own grace": {5, nil, "/quiet?for=5s&within=15s"},
		"a short one":           {5, new(int64(15)), "/quiet?for=5s&within=7s"},
		"a long one":            {5, new(int64(600)), "/quiet?for=5s&within=300s"},
		"one that is shorter than what was asked for": {20, new(int64(30)), "/quiet?for=20s&within=20s"},
		"none at all": {5, new(int64(0)), "/quiet?for=5s&within=5s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &corev1.Container{Name: "app"}
			if !keepAlive(c, Plan{Sleep: tc.seconds}, tc.grace) {
				t.Fatal("it got no hook")
			}
			want := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: tc.path, Port: intstr.FromInt32(14190)}}
			if diff := cmp.Diff(want, c.Lifecycle.PreStop); diff != "" {
				t.Errorf("the hook differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASidecarOfAnotherReleaseIsNotAskedWhatItMayNotKnow(t *testing.T) {
	c := &corev1.Container{Name: "app"}
	keepAlive(c, Plan{Sleep: 7, Image: "registry.example/sidecar:v0.1.0"}, nil)
	want := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 7}}
	if diff := cmp.Diff(want, c.Lifecycle.PreStop); diff != "" {
		t.Errorf("the hook differs (-want +got):\n%s", diff)
	}
}

func TestAHookThatAsksTheSidecarGoesWithIt(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
	injected, err := Inject(pod, Config{Image: "sidecar"}, Plan{Mode: "NamedPort", Sleep: 5})
	if err != nil {
		t.Fatal(err)
	}
	injected.Annotations = nil // somebody has cleaned up: nothing says that the hook is ours but itself
	out, err := Eject(injected)
	if err != nil {
		t.Fatal(err)
	}
	if l := out.Spec.Containers[0].Lifecycle; l != nil {
		t.Errorf("the app keeps %+v", l)
	}
}
