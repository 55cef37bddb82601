// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

func newInject(s *session) *cobra.Command {
	var file, image, operator string
	c := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Show what the webhook makes of the workloads in a file; nothing is sent anywhere",
		Long: `Shows what the webhook makes of the workloads in FILE. Policies, Services and Namespaces in the same file count, as they would
in a cluster; a workload that no policy in the file targets is shown as with a policy that says nothing of its injection. Lists, as kubectl get
gives them, come out as their items.`,
		Example: `  # What would change?
  kubectl headgate inject -f deploy.yaml | diff deploy.yaml -

  # A Job, which no policy can target, with a sidecar to ask
  kubectl headgate inject -f job.yaml | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			in, err := s.open(file)
			if err != nil {
				return err
			}
			defer in.Close()
			return s.inject(in, image, operator)
		},
	}
	filename(c, &file)
	c.Flags().StringVar(&image, "sidecar-image", "ghcr.io/headgate/sidecar:latest", "image of the sidecar")
	c.Flags().StringVar(&operator, "operator", "headgate-operator.headgate-system.svc:9444", "host:port of the operator's quota service")
	return c
}

// inject prints the workloads of a file as they would be with the sidecar, and everything else as it is.
func (s *session) inject(in io.Reader, image, operator string) error {
	m, err := read(io.LimitReader(in, maxFile))
	if err != nil {
		return err
	}
	cfg := injector.Config{Image: image, Operator: operator, CAConfigMap: "headgate-ca", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}}
	return s.rewrite(m, func(d document) ([]byte, error) {
		return d.changePods(func(pod *corev1.Pod) (*corev1.Pod, error) { return m.pod(pod, d, cfg) })
	})
}

// pod injects one pod, or one template of pods.
func (m *manifests) pod(pod *corev1.Pod, d document, cfg injector.Config) (*corev1.Pod, error) {
	var policies []v1alpha1.RateLimitPolicy
	var services []corev1.Service
	for i := range m.policies {
		if m.policies[i].Namespace == d.Namespace {
			policies = append(policies, m.policies[i])
		}
	}
	for i := range m.services {
		if m.services[i].Namespace == d.Namespace {
			services = append(services, m.services[i])
		}
	}
	covering := target.Policies(policies, []target.Workload{{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}})
	if len(covering) == 0 {
		covering = []*v1alpha1.RateLimitPolicy{{}}
	}
	plan, err := injector.PlanOf(covering, pod, injector.Surroundings{
		Services: injector.Selecting(services, pod.Labels), Namespace: m.namespaces[d.Namespace],
	})
	if err != nil {
		return nil, err
	}
	plan.Rollout = "" // what is written into a manifest is not the operator's to take out
	return injector.Inject(pod, cfg, plan)
}
