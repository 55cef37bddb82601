// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

const (
	// settle is how long a namespace must have been open to the webhook before a workload is restarted for it: the API
	// server reads the selector from a cache of its own, and a pod created in between would come up bare again.
	settle = time.Second
	// always is the value of the upgrade annotation that follows every upgrade of the installation.
	always = "always"
	// mayNot says why nothing is restarted where a policy asks for it.
	mayNot = "this installation may not restart workloads (the chart's value rollout.enabled is false)"
)

// rollOut brings the sidecar into workloads whose pods lack it, or have another one than they shall have, or says what a
// person must do.
func (r *Reconciler) rollOut(ctx context.Context, s *scope) error {
	if s.compiled == nil || !s.view.Leading {
		return nil
	}
	for _, w := range s.workloads {
		r.memory.choose(w.Workload, w.said.Rollout)
		r.judge(s, w)
		bare, stale := w.bare(), w.stale()
		var asked []*corev1.Pod
		if w.asked != "" {
			asked = w.outdated(r.Sidecar.ImageOf(w.plan))
		}
		needy := slices.Concat(bare, stale, asked)
		switch {
		case len(needy) == 0 || w.refusal != nil:
		case w.marked == injector.Hash(w.plan):
			s.refused = append(s.refused, fmt.Sprintf("%s made no pods with the sidecar (its events say why), so they are created without it; when that is mended: kubectl annotate %s -n %s %s-",
				w, resource(w.Workload), w.Namespace, v1alpha1.AnnotationRefused))
		case w.said.Rollout == v1alpha1.Manual:
			s.manual = append(s.manual, restartCommand(w.Workload))
		case r.Settings.NoRollouts:
			s.manual = append(s.manual, fmt.Sprintf("%s, so it is left to you: %s", mayNot, restartCommand(w.Workload)))
		case len(bare) == len(needy) && len(latecomers(w, bare)) == len(bare):
			if err := r.replace(ctx, s, w, bare); err != nil {
				return err
			}
		default:
			if err := r.restart(ctx, s, w, needy); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge notes what of a workload a person should know, whoever restarts it.
func (r *Reconciler) judge(s *scope, w *surveyed) {
	s.bypass = append(s.bypass, bypasses(w)...)
	for _, p := range w.pods {
		if injector.Injected(&p.Spec) {
			continue
		}
		switch err := injector.Refuse(p); {
		case target.OptedOut(p.Labels):
			s.manual = append(s.manual, fmt.Sprintf("pod %s: %v", p.Name, err))
		case err != nil:
			s.refused = append(s.refused, fmt.Sprintf("pod %s: %v", p.Name, err))
		}
	}
	if newest := w.pods[len(w.pods)-1]; w.refusal != nil && injector.Refuse(newest) == nil {
		s.refused = append(s.refused, fmt.Sprintf("%s: %v", w, w.refusal))
	}
	if image := r.Sidecar.ImageOf(w.plan); len(w.outdated(image)) > 0 {
		s.outdated = append(s.outdated, fmt.Sprintf("%d of %d pods of %s have a sidecar other than %s: the next restart brings it, or kubectl annotate %s -n %s --overwrite %s=%s",
			len(w.outdated(image)), len(w.pods), w, image, resource(w.Workload), w.Namespace, v1alpha1.AnnotationUpgrade, tagOf(image)))
	}
}

// restart restarts a workload, once for each injection.
func (r *Reconciler) restart(ctx context.Context, s *scope, w *surveyed, needy []*corev1.Pod) error {
	d, err := r.read(ctx, w.Workload)
	if apierrors.IsNotFound(err) {
		return nil // its pods end with it
	}
	if err != nil {
		return fmt.Errorf("workload %s: %w", w, err)
	}
	hash := r.hash(w)
	if d.left == "" && d.template.Annotations[v1alpha1.AnnotationInjection] == hash {
		return r.follow(ctx, s, w, d, hash)
	}
	if d.left == "" && r.memory.tried(d.object.GetUID(), hash) >= attempts {
		d.left = fmt.Sprintf("somebody takes the annotation %s of its pod template away again: keep it where the template comes from, or %s", v1alpha1.AnnotationInjection, restartCommand(w.Workload))
	}
	if d.left != "" {
		s.manual = append(s.manual, fmt.Sprintf("%s is left to you, since %s", w, d.left))
		if r.memory.news("left "+string(d.object.GetUID()), d.left) {
			r.tell(s, d, corev1.EventTypeWarning, v1alpha1.EventRolloutManual, "%d pods of %s need a restart, which is left to you, since %s", len(needy), w, d.left)
		}
		return nil
	}
	if w.acting != s.policy.UID {
		return nil
	}
	if since := s.now.Sub(s.policy.CreationTimestamp.Time); since < settle {
		s.wake(settle - since)
		return nil
	}
	if err := r.Client.Apply(ctx, change{injection: hash}.of(w.Workload), r.Settings.restartOwner(), client.ForceOwnership); err != nil {
		return fmt.Errorf("restart %s: %w", w, err)
	}
	r.memory.try(d.object.GetUID(), hash)
	r.tell(s, d, corev1.EventTypeNormal, v1alpha1.EventRolloutStarted, "Restarting %s: %d pods lack the sidecar that they shall have", w, len(needy))
	s.wake(r.Settings.patience())
	return nil
}

// hash is what a workload is restarted for.
func (r *Reconciler) hash(w *surveyed) string {
	switch w.asked {
	case "":
		return injector.Hash(w.plan)
	case always:
		return injector.Hash(w.plan, w.asked, r.Sidecar.ImageOf(w.plan))
	}
	return injector.Hash(w.plan, w.asked)
}

// follow looks after a restart that is under way. One that has made no pod for long, since the cluster refuses them, is taken
// back, and the workload marked, so that its pods are created without the sidecar and it is whole again.
func (r *Reconciler) follow(ctx context.Context, s *scope, w *surveyed, d *running, hash string) error {
	var bare []*corev1.Pod
	for _, p := range w.pods {
		if p.Annotations[v1alpha1.AnnotationInjection] != hash {
			continue // of the older template: the restart replaces it
		}
		if injector.Injected(&p.Spec) {
			return r.replace(ctx, s, w, nil)
		}
		bare = append(bare, p)
	}
	if len(bare) > 0 {
		return r.replace(ctx, s, w, bare)
	}
	since := restartedAt(d.object, r.Settings.restartOwner())
	if left := r.Settings.patience() - s.now.Sub(since); left > 0 {
		s.wake(left)
		return nil
	}
	why, err := r.failure(ctx, d, since)
	if err != nil {
		return err
	}
	if why == "" {
		s.wake(r.Settings.patience()) // it waits for something else, as for old pods to end
		return nil
	}
	if w.acting != s.policy.UID {
		return nil
	}
	if err := r.Client.Apply(ctx, change{refused: injector.Hash(w.plan)}.of(w.Workload), r.Settings.restartOwner(), client.ForceOwnership); err != nil {
		return fmt.Errorf("take the restart of %s back: %w", w, err)
	}
	w.marked = injector.Hash(w.plan)
	s.refused = append(s.refused, fmt.Sprintf("%s made no pods with the sidecar (%s), so the restart was taken back; when that is mended: kubectl annotate %s -n %s %s-",
		w, why, resource(w.Workload), w.Namespace, v1alpha1.AnnotationRefused))
	r.tell(s, d, corev1.EventTypeWarning, v1alpha1.EventRolloutReverted, "Took the restart of %s back, which made no pods for %s: %s", w, r.Settings.patience(), why)
	return nil
}

// tell makes an event on the policy and on the workload.
func (r *Reconciler) tell(s *scope, d *running, kind string, reason v1alpha1.EventReason, format string, args ...any) {
	r.Recorder.Eventf(s.policy, d.object, kind, string(reason), string(v1alpha1.ActionRestart), format, args...)
	r.Recorder.Eventf(d.object, s.policy, kind, string(reason), string(v1alpha1.ActionRestart), format, args...)
}

// tagOf is the tag of an image, for a value that a person can type.
func tagOf(image string) string {
	for i := len(image) - 1; i >= 0 && image[i] != '/'; i-- {
		if image[i] == ':' {
			return image[i+1:]
		}
	}
	return "latest"
}
