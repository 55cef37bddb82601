// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

// policy reads a policy of the session's namespace.
func (s *session) policy(ctx context.Context, name string) (*v1alpha1.RateLimitPolicy, error) {
	p := &v1alpha1.RateLimitPolicy{}
	err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("policy %q is not in namespace %s: kubectl get ratelimitpolicies.ratelimit.headgate.dev -n %s lists those that are", name, s.namespace, s.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

// enforcing returns a pod that enforces a policy: the one named, or any that is ready.
func (s *session) enforcing(ctx context.Context, p *v1alpha1.RateLimitPolicy, name string) (*corev1.Pod, error) {
	found, err := s.fleet(ctx, []v1alpha1.RateLimitPolicy{*p})
	if err != nil {
		return nil, err
	}
	var seen []string
	for _, pod := range found[0].Pods {
		switch {
		case !pod.Injected() || name != "" && pod.Name != name:
		case fleet.Ready(&pod.Pod):
			return &pod.Pod, nil
		default:
			seen = append(seen, pod.Name)
		}
	}
	switch {
	case len(seen) > 0:
		return nil, fmt.Errorf("no pod of policy %s is ready (%s): kubectl describe pod says what each waits for", p.Name, strings.Join(seen, ", "))
	case name != "":
		return nil, fmt.Errorf("pod %s carries no sidecar, or policy %s does not target it", name, p.Name)
	}
	return nil, fmt.Errorf("no pod enforces policy %s: kubectl headgate status %s -n %s says why", p.Name, p.Name, p.Namespace)
}

// ask posts a question to the loopback port of a pod's sidecar, which the API server leads to, and reads the answer.
func (s *session) ask(ctx context.Context, pod *corev1.Pod, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	t, err := s.dig(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	defer t.close()
	if err := t.call(ctx, http.MethodPost, path, question, answer); err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	return nil
}
