// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
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
	var list corev1.PodList
	if err := s.List(ctx, &list, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelInjected}); err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	var seen []string
	for i := range list.Items {
		pod := &list.Items[i]
		owners, err := target.Owners(ctx, pod, s.Client)
		if err != nil {
			return nil, err
		}
		if !target.Covers(p, owners) || name != "" && pod.Name != name {
			continue
		}
		if ready(pod) {
			return pod, nil
		}
		seen = append(seen, pod.Name)
	}
	switch {
	case len(seen) > 0:
		return nil, fmt.Errorf("no pod of policy %s is ready (%s): kubectl describe pod says what each waits for", p.Name, strings.Join(seen, ", "))
	case name != "":
		return nil, fmt.Errorf("pod %s carries no sidecar, or policy %s does not target it", name, p.Name)
	}
	return nil, fmt.Errorf("no pod enforces policy %s: kubectl describe ratelimitpolicies.ratelimit.headgate.dev %s -n %s says why", p.Name, p.Name, p.Namespace)
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// ask posts a question to the loopback port of a pod's sidecar, which the API server leads to, and reads the answer.
func (s *session) ask(ctx context.Context, pod *corev1.Pod, path string, question, answer any) error {
	address, hangUp, err := s.forward(pod)
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	defer hangUp()
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("pod %s does not answer: %w", pod.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("pod %s breaks off: %w", pod.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		var told struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(raw, &told) == nil && told.Error != "" {
			return fmt.Errorf("pod %s: %s", pod.Name, told.Error)
		}
		return fmt.Errorf("pod %s answered %s: its sidecar may be of an older release", pod.Name, response.Status)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("answer of pod %s: %w", pod.Name, err)
	}
	return nil
}

// forward opens a local port that leads to the sidecar's loopback port.
func (s *session) forward(pod *corev1.Pod) (address string, hangUp func(), err error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return "", nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return "", nil, err
	}
	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialer(url, s.config)
	if err != nil {
		return "", nil, err
	}
	dialer := portforward.NewFallbackDialer(websocket, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), func(error) bool { return true })
	stop, opened := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", quotav1.PortLocal)}, stop, opened, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	var failure error // set before ended is closed
	go func() {
		defer close(ended)
		failure = forwarder.ForwardPorts()
	}()
	select {
	case <-ended:
		return "", nil, failure
	case <-opened:
	}
	hangUp = func() {
		close(stop)
		<-ended
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) != 1 {
		hangUp()
		return "", nil, errors.Join(errors.New("no port was opened"), err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), hangUp, nil
}
