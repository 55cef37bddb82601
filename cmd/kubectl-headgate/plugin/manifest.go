// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
)

// maxFile bounds what is read.
const maxFile = 16 << 20

// filename is kubectl's -f.
func filename(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "filename", "f", "", "file with manifests; - = standard input (required)")
	_ = c.MarkFlagRequired("filename")
}

// open opens a file of manifests.
func (s *session) open(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(s.streams.In), nil
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	return opened, nil
}

// rewrite prints the objects of a file as change makes them. One that cannot be changed is printed as it is, and the error says
// which.
func (s *session) rewrite(m *manifests, change func(d document) ([]byte, error)) error {
	var refused error
	for i, d := range m.documents {
		if i > 0 {
			fmt.Fprintln(s.streams.Out, "---")
		}
		out, err := change(d)
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
		if err := m.take(d); err != nil {
			return nil, err
		}
	}
}

// take adds a document, or each item of a list, as kubectl get gives it.
func (m *manifests) take(d document) error {
	var list struct {
		Items *[]map[string]any `json:"items"`
	}
	if strings.HasSuffix(d.Kind, "List") {
		if err := yaml.Unmarshal(d.text, &list); err != nil {
			return fmt.Errorf("%s: %w", d.Kind, err)
		}
	}
	if list.Items == nil {
		m.documents = append(m.documents, d)
		if err := m.note(d); err != nil {
			return fmt.Errorf("%s %s: %w", d.Kind, d.Name, err)
		}
		return nil
	}
	for i, item := range *list.Items {
		text, err := yaml.Marshal(item)
		if err != nil {
			return fmt.Errorf("%s, item %d: %w", d.Kind, i+1, err)
		}
		one := document{text: text}
		if err := yaml.Unmarshal(text, &one.PartialObjectMetadata); err != nil {
			return fmt.Errorf("%s, item %d: %w", d.Kind, i+1, err)
		}
		if err := m.take(one); err != nil {
			return err
		}
	}
	return nil
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

// workload is an object with pods, and their template; nil for an object without.
func (d *document) workload() (object any, template *corev1.PodTemplateSpec, err error) {
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
	case "CronJob":
		o := &batchv1.CronJob{}
		object, template = o, &o.Spec.JobTemplate.Spec.Template
	default:
		return nil, nil, nil
	}
	return object, template, yaml.Unmarshal(d.text, object)
}

// changePods returns the text of a document with its pods, or its template of pods, changed; a document without pods as it is.
func (d *document) changePods(change func(*corev1.Pod) (*corev1.Pod, error)) ([]byte, error) {
	if d.Kind == "Pod" {
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal(d.text, pod); err != nil {
			return nil, err
		}
		out, err := change(pod)
		if err != nil {
			return nil, err
		}
		return yaml.Marshal(out)
	}
	object, template, err := d.workload()
	if err != nil || template == nil {
		return d.text, err
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Namespace = d.Namespace
	out, err := change(pod)
	if err != nil {
		return nil, err
	}
	out.Namespace = ""
	template.ObjectMeta, template.Spec = out.ObjectMeta, out.Spec
	return yaml.Marshal(object)
}
