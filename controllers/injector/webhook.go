// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
)

// Webhook injects the sidecar into pods that a policy covers, as they are created.
type Webhook struct {
	Config Config
	Cache  client.Reader
	// Live is asked when the cache does not know a pod's owner yet.
	Live     client.Reader
	Recorder events.EventRecorder
}

// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,timeoutSeconds=3,groups="",resources=pods,verbs=create,versions=v1,name=inject.ratelimit.headgate.dev,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded

// SetupWithManager registers the webhook.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(w).Complete()
}

// Default implements admission.Defaulter. It never refuses a pod: one that could not be injected comes up bare, is counted
// in the policy's condition and, where that helps, replaced.
func (w *Webhook) Default(ctx context.Context, pod *corev1.Pod) error {
	log := ctrl.LoggerFrom(ctx)
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	subject := pod.DeepCopy()
	subject.Namespace = req.Namespace // not yet set in a pod that is being created
	policies, out, err := w.inject(ctx, subject)
	if err != nil {
		result := resultNotInjectable
		if !errors.Is(err, ErrNotInjectable) {
			result = resultError
			log.Error(err, "Leaving a pod without the sidecar", "namespace", req.Namespace, "generateName", pod.GenerateName)
		} else if !target.OptedOut(pod.Labels) && (req.DryRun == nil || !*req.DryRun) {
			w.Recorder.Eventf(policies[0], nil, corev1.EventTypeWarning, string(v1alpha1.EventNotInjected), string(v1alpha1.ActionInject),
				"Pod %s of %s: %v", pod.GenerateName+pod.Name, ownerName(pod), err)
		}
		injections.WithLabelValues(result).Inc()
		return nil
	}
	if out == nil {
		injections.WithLabelValues(resultNotCovered).Inc()
		return nil
	}
	injections.WithLabelValues(resultInjected).Inc()
	out.Namespace = pod.Namespace
	*pod = *out
	return nil
}

// inject returns the policies that cover a pod, oldest first, and the pod with the sidecar: nil when none does, or when its
// workload is marked as one whose pods cannot be made with it.
func (w *Webhook) inject(ctx context.Context, pod *corev1.Pod) ([]*v1alpha1.RateLimitPolicy, *corev1.Pod, error) {
	var list v1alpha1.RateLimitPolicyList
	if err := w.Cache.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
		return nil, nil, err
	}
	if len(list.Items) == 0 {
		return nil, nil, nil
	}
	owners, err := target.Owners(ctx, pod, w.Cache, w.Live)
	if err != nil {
		return nil, nil, err
	}
	policies := target.Policies(list.Items, owners)
	if len(policies) == 0 {
		return nil, nil, nil
	}
	around, err := Around(ctx, w.Cache, pod)
	if err != nil {
		return policies, nil, err
	}
	around.Default = w.Config.Default
	plan, err := PlanOf(policies, pod, around)
	if err != nil {
		return policies, nil, err
	}
	refused, err := w.refused(ctx, owners, Hash(plan))
	if err != nil || refused {
		return policies, nil, err
	}
	out, err := Inject(pod, w.Config, plan)
	return policies, out, err
}

// Around reads the surroundings of a pod.
func Around(ctx context.Context, c client.Reader, pod *corev1.Pod) (Surroundings, error) {
	var services corev1.ServiceList
	if err := c.List(ctx, &services, client.InNamespace(pod.Namespace)); err != nil {
		return Surroundings{}, fmt.Errorf("services of namespace %s: %w", pod.Namespace, err)
	}
	var namespace corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace); err != nil {
		return Surroundings{}, fmt.Errorf("namespace %s: %w", pod.Namespace, err)
	}
	return Surroundings{Services: Selecting(services.Items, pod.Labels), Namespace: namespace.ObjectMeta}, nil
}

// refused reports whether the workload of a pod is marked: its pods could not be made with this injection.
func (w *Webhook) refused(ctx context.Context, owners []target.Workload, hash string) (bool, error) {
	for _, owner := range owners {
		o := owner.Object()
		err := w.Cache.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			continue // a ReplicaSet that the cache has not seen yet: it is not marked
		}
		if err != nil {
			return false, fmt.Errorf("owner %s: %w", owner, err)
		}
		if o.Annotations[v1alpha1.AnnotationRefused] == hash {
			return true, nil
		}
	}
	return false, nil
}

func ownerName(pod *corev1.Pod) string {
	for _, ref := range pod.OwnerReferences {
		return ref.Kind + " " + ref.Name
	}
	return "no workload"
}
