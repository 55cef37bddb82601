// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
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
	policies, plan, err := w.find(ctx, subject)
	if err != nil {
		log.Error(err, "Leaving a pod without the sidecar", "namespace", req.Namespace, "generateName", pod.GenerateName)
		return nil
	}
	if len(policies) == 0 {
		return nil
	}
	out, err := Inject(pod, w.Config, plan)
	if err != nil {
		if !target.OptedOut(pod.Labels) && errors.Is(err, ErrNotInjectable) && (req.DryRun == nil || !*req.DryRun) {
			w.Recorder.Eventf(policies[0], nil, corev1.EventTypeWarning, string(v1alpha1.EventNotInjected), string(v1alpha1.ActionInject),
				"Pod %s of %s: %v", pod.GenerateName+pod.Name, ownerName(pod), err)
		}
		return nil
	}
	*pod = *out
	return nil
}

// find returns the policies that cover a pod, oldest first, and what they say about its injection.
func (w *Webhook) find(ctx context.Context, pod *corev1.Pod) ([]*v1alpha1.RateLimitPolicy, Plan, error) {
	var list v1alpha1.RateLimitPolicyList
	if err := w.Cache.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
		return nil, Plan{}, err
	}
	if len(list.Items) == 0 {
		return nil, Plan{}, nil
	}
	owners, err := target.Owners(ctx, pod, w.Cache, w.Live)
	if err != nil {
		return nil, Plan{}, err
	}
	policies := target.Policies(list.Items, owners)
	if len(policies) == 0 {
		return nil, Plan{}, nil
	}
	var services corev1.ServiceList
	if err := w.Cache.List(ctx, &services, client.InNamespace(pod.Namespace)); err != nil {
		return nil, Plan{}, err
	}
	return policies, PlanOf(policies, Selecting(services.Items, pod.Labels)), nil
}

func ownerName(pod *corev1.Pod) string {
	for _, ref := range pod.OwnerReferences {
		return ref.Kind + " " + ref.Name
	}
	return "no workload"
}
