// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// App is the echo application: a workload with a Service before it.
type App struct {
	Name, Namespace string
	Image           string
	Local           bool // the image is imported into the nodes
	Args            []string
	Labels          map[string]string // further labels of the pods
	// Change edits the pods before they are made.
	Change func(*corev1.PodTemplateSpec)
}

// labelApp selects the pods of an app.
const labelApp = "app.kubernetes.io/name"

func (a *App) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace, Labels: map[string]string{labelApp: a.Name}}
}

func (a *App) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: a.Name}}
}

// template is a pod that the restricted Pod Security Standard allows.
func (a *App) template() corev1.PodTemplateSpec {
	labels := map[string]string{labelApp: a.Name}
	maps.Copy(labels, a.Labels)
	pull := corev1.PullIfNotPresent
	if a.Local {
		pull = corev1.PullNever
	}
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "app", Image: a.Image, ImagePullPolicy: pull, Args: a.Args,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
				}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if a.Change != nil {
		a.Change(&out)
	}
	return out
}

// Deployment is the app as a Deployment. No pod goes before another is ready, as where no request may be lost.
func (a *App) Deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: a.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: a.selector(), Template: a.template(),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(2)),
			}},
		},
	}
}

// StatefulSet is the app as a StatefulSet.
func (a *App) StatefulSet(replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: a.meta(),
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: a.selector(), Template: a.template(), ServiceName: a.Name,
			PodManagementPolicy: appsv1.ParallelPodManagement},
	}
}

// DaemonSet is the app as a DaemonSet.
func (a *App) DaemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: a.meta(),
		Spec:       appsv1.DaemonSetSpec{Selector: a.selector(), Template: a.template()},
	}
}

// Service targets the app's port by its name.
func (a *App) Service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: a.meta(),
		Spec: corev1.ServiceSpec{
			Selector: a.selector().MatchLabels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}

// Job is the app as a Job that ends by itself.
func (a *App) Job() *batchv1.Job {
	template := a.template()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: a.meta(), Spec: batchv1.JobSpec{Template: template, BackoffLimit: new(int32(0))}}
}

// Autoscaler keeps the Deployment between two bounds, by its use of the CPU in per cent of what it requests, that of its pods
// and that of the app's container. It scales down as soon as it may.
func (a *App) Autoscaler(least, most, percent int32) *autoscalingv2.HorizontalPodAutoscaler {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: a.meta(),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: a.Name},
			MinReplicas:    &least, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{
				{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: target}},
				{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
					Name: corev1.ResourceCPU, Container: "app", Target: target}},
			},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))},
			},
		},
	}
}

// Pods lists the pods of the app that have not ended, by name.
func (c *Cluster) Pods(ctx context.Context, a *App) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingLabels(a.selector().MatchLabels)); err != nil {
		return nil, fmt.Errorf("pods of %s: %w", a.Name, err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(x, y corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	return pods, nil
}

// Ready reports whether a pod gets requests.
func Ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// WaitReady waits until exactly n pods of the app are there and ready; those that are ending are not waited for.
func (c *Cluster) WaitReady(ctx context.Context, timeout time.Duration, a *App, n int) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := Wait(ctx, timeout, fmt.Sprintf("%d pods of %s to be ready", n, a.Name), func(ctx context.Context) error {
		all, err := c.Pods(ctx, a)
		if err != nil {
			return err
		}
		pods = slices.DeleteFunc(all, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		ready := 0
		var why []string
		for i := range pods {
			if Ready(&pods[i]) {
				ready++
			} else {
				why = append(why, Unready(&pods[i]))
			}
		}
		if ready != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods are ready; %s", ready, len(pods), strings.Join(why, "; "))
		}
		return nil
	})
	return pods, err
}

// Unready says what a pod waits for.
func Unready(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return p.Name + ": " + c.Message
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case c.State.Waiting != nil:
			return fmt.Sprintf("%s: container %s: %s %s", p.Name, c.Name, c.State.Waiting.Reason, c.State.Waiting.Message)
		case !c.Ready:
			return fmt.Sprintf("%s: container %s is not ready", p.Name, c.Name)
		}
	}
	return p.Name + " is not ready"
}

// Address returns http://IP:port of the app's Service, once it has an address.
func (c *Cluster) Address(ctx context.Context, a *App) (string, error) {
	var s corev1.Service
	if err := c.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, &s); err != nil {
		return "", fmt.Errorf("service %s: %w", a.Name, err)
	}
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", errors.New("service " + a.Name + " has no address of the cluster")
	}
	return fmt.Sprintf("http://%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port), nil
}
