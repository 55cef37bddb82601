// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
)

var update = flag.Bool("update", false, "write the golden files")

// example is a pod as people write it, what its policy says, and what is around it.
type example struct {
	Injection v1alpha1.Injection `json:"injection,omitzero"`
	Services  []corev1.Service   `json:"services,omitempty"`
	Namespace metav1.ObjectMeta  `json:"namespace,omitzero"`
	Pod       corev1.Pod         `json:"pod"`
}

// inject does what the webhook does.
func (e *example) inject(pod *corev1.Pod) (*corev1.Pod, error) {
	policy := &v1alpha1.RateLimitPolicy{Spec: v1alpha1.RateLimitPolicySpec{Injection: e.Injection}}
	plan, err := injector.PlanOf([]*v1alpha1.RateLimitPolicy{policy}, injector.Original(pod), injector.Surroundings{
		Services: injector.Selecting(e.Services, pod.Labels), Namespace: e.Namespace,
	})
	if err != nil {
		return nil, err
	}
	return injector.Inject(pod, config, plan)
}

var config = injector.Config{
	Image: "registry.example/headgate-sidecar:v1", PullPolicy: corev1.PullIfNotPresent,
	Operator: "headgate-operator.headgate-system.svc:9444", CAConfigMap: "headgate-ca",
	Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	},
}

func TestInjectGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, in := range inputs {
		name := strings.TrimSuffix(filepath.Base(in), ".in.yaml")
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			e := read(t, in)
			before := e.Pod.DeepCopy()
			got, err := e.inject(&e.Pod)
			if diff := cmp.Diff(*before, e.Pod); diff != "" {
				t.Errorf("Inject changed its argument:\n%s", diff)
			}
			golden := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			if *update {
				write(t, golden, got, err)
			}
			want, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if diff := cmp.Diff(string(want), render(t, got, err)); diff != "" {
				t.Errorf("%s differs (-want +got); go test ./controllers/injector -update writes it:\n%s", golden, diff)
			}
			if err != nil {
				if !errors.Is(err, injector.ErrNotInjectable) {
					t.Errorf("error %v is not ErrNotInjectable", err)
				}
				return
			}
			again, err := e.inject(got)
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Errorf("injecting twice differs from once: %v\n%s", err, diff)
			}
		})
	}
}

func read(t *testing.T, path string) *example {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := &example{}
	if err := yaml.UnmarshalStrict(b, e); err != nil {
		t.Fatal(err)
	}
	return e
}

func render(t *testing.T, pod *corev1.Pod, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	b, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path string, pod *corev1.Pod, err error) {
	t.Helper()
	if err := os.WriteFile(path, []byte(render(t, pod, err)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestHashChangesOnlyWithWhatTheInjectionDoes(t *testing.T) {
	a := injector.Plan{Mode: v1alpha1.NamedPort, Ports: []string{"http"}}
	if injector.Hash(a) != injector.Hash(injector.Plan{Mode: v1alpha1.NamedPort, Ports: []string{"http"}}) {
		t.Error("equal plans have different hashes: every reconciliation would restart the workload")
	}
	if injector.Hash(a) == injector.Hash(injector.Plan{Mode: v1alpha1.NamedPort, Ports: []string{"grpc"}}) {
		t.Error("different ports have the same hash: the workload would not be restarted")
	}
	if injector.Hash(a) == injector.Hash(a, "1") || injector.Hash(a, "1") == injector.Hash(a, "2") {
		t.Error("a restart that somebody asks for has the hash of the one before: the workload would not be restarted")
	}
	b := a
	b.Rollout, b.Mesh = v1alpha1.Manual, "Istio"
	if injector.Hash(a) != injector.Hash(b) {
		t.Error("what changes nothing of the pod changes the hash: the workload would be restarted for nothing")
	}
}
