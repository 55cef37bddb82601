// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/quota"
)

func TestASlimPodIsJudgedAsTheWholeOne(t *testing.T) {
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", Labels: map[string]string{"app": "a"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec: corev1.PodSpec{
			NodeName:   "node1",
			Volumes:    []corev1.Volume{{Name: "v"}},
			Containers: []corev1.Container{{Name: "app", Image: "app", Env: []corev1.EnvVar{{Name: "SECRET", Value: "x"}}, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true}}},
	}
	injected, err := injector.Inject(whole, injector.Config{}, injector.Plan{Mode: v1alpha1.NamedPort})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []*corev1.Pod{whole, injected} {
		out, err := slimPod(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		slim := out.(*corev1.Pod)
		if diff := cmp.Diff(quota.NewPodState(pod, nil), quota.NewPodState(slim, nil)); diff != "" {
			t.Errorf("the pod's state differs (-whole +slim):\n%s", diff)
		}
		if _, err := injector.Inject(slim, injector.Config{}, injector.Plan{Mode: v1alpha1.NamedPort}); err != nil {
			t.Errorf("the slim pod is refused: %v", err)
		}
		if slim.Spec.Volumes != nil || slim.Spec.Containers[0].Env != nil || slim.ManagedFields != nil {
			t.Error("the cache keeps what nobody reads")
		}
	}
}
