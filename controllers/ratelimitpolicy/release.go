// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// release frees, once, the share of pods that a person has declared gone, and takes the annotation away: a later pod of the
// same name, as those of a StatefulSet are, must not be taken for the one that the person meant.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	text := s.policy.Annotations[v1alpha1.AnnotationRelease]
	if text == "" || !s.view.Leading {
		return nil // only the leader knows who is silent
	}
	var released, kept []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if r.Mint.Release(types.NamespacedName{Namespace: s.policy.Namespace, Name: name}) {
			released = append(released, name)
		} else {
			kept = append(kept, name)
		}
	}
	if len(released) > 0 {
		r.Recorder.Eventf(s.policy, nil, corev1.EventTypeNormal, string(v1alpha1.EventReleased), string(v1alpha1.ActionRelease),
			"The share of pod %s was released, since a person says that it has ended", strings.Join(released, ", "))
	}
	if len(kept) > 0 {
		r.Recorder.Eventf(s.policy, nil, corev1.EventTypeWarning, string(v1alpha1.EventNotReleased), string(v1alpha1.ActionRelease),
			"No share of pod %s is reserved: it speaks still, or nobody knows it", strings.Join(kept, ", "))
	}
	// Only what was read is taken away: somebody may have written another name meanwhile.
	path := "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationRelease, "/", "~1")
	patch, err := json.Marshal([]map[string]any{{"op": "test", "path": path, "value": text}, {"op": "remove", "path": path}})
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	err = r.Client.Patch(ctx, s.policy.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), FieldOwner)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release: %w", err)
	}
	s.view = r.Mint.View(s.policy.UID, s.policy.Generation)
	return nil
}
