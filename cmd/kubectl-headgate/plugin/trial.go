// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/diagnosis"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// Ports that the operator's pods serve TLS on, and the names that their clients want there.
const (
	portWebhook = 9443
	portQuota   = 9444
)

// try creates, by a dry run, one pod in each namespace with policies, as its workload would, and notes what comes of it.
func (x *examination) try(ctx context.Context) {
	var all errgroup.Group
	all.SetLimit(atOnce)
	var mu sync.Mutex
	tried := map[string]bool{}
	for i := range x.Policies {
		p := &x.Policies[i]
		if tried[p.Namespace] || p.DeletionTimestamp != nil {
			continue
		}
		pod, w := x.sample(ctx, p)
		if pod == nil {
			continue
		}
		tried[p.Namespace] = true
		all.Go(func() error {
			err := x.session.Create(ctx, pod, client.DryRunAll)
			mu.Lock()
			defer mu.Unlock()
			t := diagnosis.Trial{Workload: w}
			switch {
			case err == nil:
				t.Injected = injector.Injected(&pod.Spec)
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"), strings.Contains(err.Error(), "does not support dry run"):
				x.blind("pods that are tried in namespace "+p.Namespace, err)
				return nil
			default:
				t.Refused = err.Error()
			}
			x.Trials = append(x.Trials, t)
			return nil
		})
	}
	_ = all.Wait()
	slices.SortFunc(x.Trials, func(a, b diagnosis.Trial) int { return strings.Compare(a.Workload.Namespace, b.Workload.Namespace) })
	if slices.ContainsFunc(x.Trials, func(t diagnosis.Trial) bool { return !t.Injected && t.Refused == "" }) {
		x.Webhook.Reached = x.session.reach(ctx, x.Operator.Namespace, x.Operator.Name)
	}
}

// sample is a pod as the first target of a policy would make it that should get the sidecar; nil when there is none.
func (x *examination) sample(ctx context.Context, p *fleet.Policy) (*corev1.Pod, target.Workload) {
	for _, w := range target.Of(&p.RateLimitPolicy) {
		if !x.Found[w] {
			continue
		}
		pod, refused, err := x.session.podOf(ctx, w)
		if x.blind("target "+w.String()+" of namespace "+w.Namespace, err) || pod == nil || refused {
			continue
		}
		around := injector.Surroundings{Services: injector.Selecting(inNamespace(x.Services, w.Namespace), pod.Labels), Namespace: x.Namespaces[w.Namespace], Default: x.Default}
		plan, err := injector.PlanOf([]*v1alpha1.RateLimitPolicy{&p.RateLimitPolicy}, pod, around)
		if err == nil {
			_, err = injector.Inject(pod, injector.Config{}, plan)
		}
		if err == nil {
			return pod, w
		}
	}
	return nil, target.Workload{}
}

func inNamespace(all []corev1.Service, namespace string) []corev1.Service {
	return slices.DeleteFunc(slices.Clone(all), func(s corev1.Service) bool { return s.Namespace != namespace })
}

// podOf is a pod as a workload would make it; refused says that the workload is marked as one whose pods cannot be made with the
// sidecar.
func (s *session) podOf(ctx context.Context, w target.Workload) (pod *corev1.Pod, refused bool, err error) {
	object, template := emptyWorkload(w.Kind)
	if object == nil {
		return nil, false, nil
	}
	if err := s.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, object); err != nil {
		return nil, false, err
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: w.Kind, Name: w.Name, UID: object.GetUID(), Controller: new(true)}
	if w.Kind == "Deployment" {
		set, err := s.newestSet(ctx, object)
		if err != nil || set == nil {
			return nil, false, err
		}
		owner.Kind, owner.Name, owner.UID = "ReplicaSet", set.Name, set.UID
	}
	pod = &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName, pod.OwnerReferences = w.Namespace, "headgate-doctor-", []metav1.OwnerReference{owner}
	return pod, object.GetAnnotations()[v1alpha1.AnnotationRefused] != "", nil
}

// emptyWorkload is an object to read into, and where its template will be.
func emptyWorkload(kind string) (client.Object, *corev1.PodTemplateSpec) {
	switch kind {
	case "Deployment":
		o := &appsv1.Deployment{}
		return o, &o.Spec.Template
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		return o, &o.Spec.Template
	case "DaemonSet":
		o := &appsv1.DaemonSet{}
		return o, &o.Spec.Template
	case "ReplicaSet":
		o := &appsv1.ReplicaSet{}
		return o, &o.Spec.Template
	}
	return nil, nil
}

// newestSet finds a ReplicaSet of a Deployment.
func (s *session) newestSet(ctx context.Context, deployment client.Object) (*metav1.PartialObjectMetadata, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := s.List(ctx, &list, client.InNamespace(deployment.GetNamespace())); err != nil {
		return nil, err
	}
	var newest *metav1.PartialObjectMetadata
	for i := range list.Items {
		set := &list.Items[i]
		if metav1.IsControlledBy(set, deployment) && (newest == nil || newest.CreationTimestamp.Before(&set.CreationTimestamp)) {
			newest = set
		}
	}
	return newest, nil
}

// reach lets the API server connect to the webhook as it does for every pod, and returns what keeps it from that. An answer of
// any kind is a connection; whoever may not ask learns nothing.
func (s *session) reach(ctx context.Context, namespace, service string) string {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	err = clients.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "services", "https:"+service+":443", "proxy/").Do(ctx).Error()
	switch {
	case err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err):
		return ""
	case ctx.Err() != nil:
		return "it does not answer the API server within " + longPatience.String()
	case apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err):
		return err.Error()
	}
	return ""
}

// clock is the API server's, which it tells in whole seconds.
func (s *session) clock(ctx context.Context) (time.Time, error) {
	web, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return time.Time{}, err
	}
	base, _, err := rest.DefaultServerUrlFor(s.config)
	if err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	response, err := web.Do(r)
	if err != nil {
		return time.Time{}, err
	}
	defer response.Body.Close()
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Now(), nil //nolint:nilerr // a proxy that hides the date: then nothing can be compared
	}
	return at.Add(time.Second / 2), nil
}

// served looks at the certificates that each pod of the operator presents.
func (x *examination) served(ctx context.Context) {
	o := &x.Operator
	for i := range o.Pods {
		pod := &o.Pods[i]
		if !fleet.Ready(pod) {
			continue
		}
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, longPatience)
			defer cancel()
			t, err := x.session.dig(ctx, pod.Namespace, pod.Name)
			if err != nil {
				return err
			}
			defer t.close()
			for port, name := range map[int]string{portWebhook: fmt.Sprintf("%s.%s.svc", o.Name, o.Namespace), portQuota: quotav1.ServerName} {
				x.Served = append(x.Served, present(ctx, t, pod.Name, port, name))
			}
			return nil
		}()
		if x.blind("certificates of pod "+pod.Name, err) {
			return
		}
	}
	slices.SortFunc(x.Served, func(a, b diagnosis.Served) int {
		if c := strings.Compare(a.Pod, b.Pod); c != 0 {
			return c
		}
		return a.Port - b.Port
	})
}

// present shakes hands for the sake of the certificate, which diagnosis verifies.
func present(ctx context.Context, t *tunnel, pod string, port int, name string) diagnosis.Served {
	out := diagnosis.Served{Pod: pod, Port: port, Name: name}
	conn, err := t.dial(port)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer func() { _ = conn.Close() }()
	hello := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // it is verified afterwards
	if err := hello.HandshakeContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		out.Error = err.Error()
	}
	out.Chain = hello.ConnectionState().PeerCertificates
	return out
}

// flagOf is what the operator is told by a flag; nothing where it is not.
func flagOf(d *appsv1.Deployment, name string) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, a := range c.Args {
			if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
				return value
			}
		}
	}
	return ""
}
