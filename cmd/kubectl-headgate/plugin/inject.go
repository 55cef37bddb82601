// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// maxFile bounds what is read.
const maxFile = 16 << 20

func newInject(s *session) *cobra.Command {
	var file, image, operator string
	c := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Show what the webhook makes of the workloads in a file; nothing is sent anywhere",
		Long: `Shows what the webhook makes of the workloads in FILE. Policies, Services and Namespaces in the same file count, as they would
in a cluster; a workload that no policy in the file targets is shown as with a policy that says nothing of its injection.`,
		Example: `  # What would change?
  kubectl headgate inject -f deploy.yaml | diff deploy.yaml -

  # A Job, which no policy can target, with a sidecar to ask
  kubectl headgate inject -f job.yaml | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			in := s.streams.In
			if file != "-" {
				opened, err := os.Open(file)
				if err != nil {
					return fmt.Errorf("manifests: %w", err)
				}
				defer opened.Close()
				in = opened
			}
			return s.inject(in, image, operator)
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "file with manifests; - = standard input (required)")
	c.Flags().StringVar(&image, "sidecar-image", "ghcr.io/headgate/headgate-sidecar:latest", "image of the sidecar")
	c.Flags().StringVar(&operator, "operator", "headgate-operator.headgate-system.svc:9444", "host:port of the operator's quota service")
	_ = c.MarkFlagRequired("filename")
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
	var refused error
	for i, d := range m.documents {
		if i > 0 {
			fmt.Fprintln(s.streams.Out, "---")
		}
		out, err := m.inject(d, cfg)
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("%s %s: %w", d.Kind, d.Name, err))
			out = d.text
		}
		if _, err := s.streams.Out.Write(out); err != nil {
			return err
		}
	}
	return refused
}

// document is one object of a file.
type document struct {
	metav1.PartialObjectMetadata
	text []byte
}

// manifests are the objects of a file, and what of them decides how pods are injected.
type manifests struct {
	documents  []document
	policies   []v1alpha1.RateLimitPolicy
	services   []corev1.Service
	namespaces map[string]metav1.ObjectMeta
}

func read(in io.Reader) (*manifests, error) {
	m := &manifests{namespaces: map[string]metav1.ObjectMeta{}}
	r := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		text, err := r.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifests: %w", err)
		}
		d := document{text: text}
		if err := yaml.Unmarshal(text, &d.PartialObjectMetadata); err != nil {
			return nil, fmt.Errorf("manifest %d: %w", len(m.documents)+1, err)
		}
		if d.Kind == "" {
			continue // nothing but comments
		}
		m.documents = append(m.documents, d)
		if err := m.note(d); err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.Kind, d.Name, err)
		}
	}
}

// note keeps what decides how pods are injected.
func (m *manifests) note(d document) error {
	switch d.Kind {
	case "RateLimitPolicy":
		var p v1alpha1.RateLimitPolicy
		if err := yaml.Unmarshal(d.text, &p); err != nil {
			return err
		}
		p.UID = types.UID(fmt.Sprint(len(m.policies)))
		m.policies = append(m.policies, p)
	case "Service":
		var s corev1.Service
		if err := yaml.Unmarshal(d.text, &s); err != nil {
			return err
		}
		m.services = append(m.services, s)
	case "Namespace":
		m.namespaces[d.Name] = d.ObjectMeta
	}
	return nil
}

// inject returns the text of a document, with the sidecar where it has pods.
func (m *manifests) inject(d document, cfg injector.Config) ([]byte, error) {
	var object any
	var template *corev1.PodTemplateSpec
	switch d.Kind {
	case "Deployment":
		o := &appsv1.Deployment{}
		object, template = o, &o.Spec.Template
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		object, template = o, &o.Spec.Template
	case "DaemonSet":
		o := &appsv1.DaemonSet{}
		object, template = o, &o.Spec.Template
	case "ReplicaSet":
		o := &appsv1.ReplicaSet{}
		object, template = o, &o.Spec.Template
	case "Job":
		o := &batchv1.Job{}
		object, template = o, &o.Spec.Template
	case "Pod":
		o := &corev1.Pod{}
		if err := yaml.Unmarshal(d.text, o); err != nil {
			return nil, err
		}
		out, err := m.pod(o, d, cfg)
		if err != nil {
			return nil, err
		}
		return yaml.Marshal(out)
	default:
		return d.text, nil
	}
	if err := yaml.Unmarshal(d.text, object); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Namespace = d.Namespace
	out, err := m.pod(pod, d, cfg)
	if err != nil {
		return nil, err
	}
	out.Namespace = ""
	template.ObjectMeta, template.Spec = out.ObjectMeta, out.Spec
	return yaml.Marshal(object)
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
