// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Discover writes the targets that Prometheus' roles pod and endpointslice find, with the labels that relabelling looks at, to two
// files that file_sd_configs read; each second, until the context ends. Debian's Prometheus is built without these roles.
func (c *Cluster) Discover(ctx context.Context, podsFile, slicesFile string) error {
	if err := c.discover(ctx, podsFile, slicesFile); err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = c.discover(ctx, podsFile, slicesFile) // the files stay as they are
			}
		}
	}()
	return nil
}

// targets are those of one file, with their labels.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

const prefix = "__meta_kubernetes_"

func (c *Cluster) discover(ctx context.Context, podsFile, slicesFile string) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return fmt.Errorf("discover pods: %w", err)
	}
	var slices discoveryv1.EndpointSliceList
	if err := c.List(ctx, &slices); err != nil {
		return fmt.Errorf("discover endpoints: %w", err)
	}
	found := []targets{}
	for i := range pods.Items {
		found = append(found, podTargets(&pods.Items[i])...)
	}
	if err := write(podsFile, found); err != nil {
		return err
	}
	found = []targets{}
	for i := range slices.Items {
		found = append(found, sliceTargets(&slices.Items[i])...)
	}
	return write(slicesFile, found)
}

// podTargets are the declared ports of a pod, its init containers' among them.
func podTargets(p *corev1.Pod) (out []targets) {
	if p.Status.PodIP == "" {
		return nil
	}
	for _, containers := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for _, container := range containers {
			for _, port := range container.Ports {
				out = append(out, targets{
					Targets: []string{net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))},
					Labels: map[string]string{
						prefix + "namespace": p.Namespace, prefix + "pod_name": p.Name, prefix + "pod_phase": string(p.Status.Phase),
						prefix + "pod_container_name": container.Name, prefix + "pod_container_port_name": port.Name,
					},
				})
			}
		}
	}
	return out
}

func sliceTargets(s *discoveryv1.EndpointSlice) (out []targets) {
	for _, e := range s.Endpoints {
		for _, port := range s.Ports {
			if port.Port == nil || port.Name == nil || len(e.Addresses) == 0 {
				continue
			}
			labels := map[string]string{
				prefix + "namespace": s.Namespace, prefix + "service_name": s.Labels[discoveryv1.LabelServiceName],
				prefix + "endpointslice_port_name": *port.Name,
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				labels[prefix+"pod_name"] = e.TargetRef.Name
			}
			out = append(out, targets{Targets: []string{net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*port.Port)))}, Labels: labels})
		}
	}
	return out
}

// write replaces a file in one step: it may be read at any moment.
func write(file string, found []targets) error {
	raw, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
