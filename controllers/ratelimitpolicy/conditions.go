// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/quota"
	"github.com/headgate/headgate/controllers/target"
)

// verdict is one condition, decided.
type verdict struct {
	kind    v1alpha1.ConditionType
	status  metav1.ConditionStatus
	reason  v1alpha1.Reason
	message string
}

func yes(kind v1alpha1.ConditionType, reason v1alpha1.Reason, format string, args ...any) verdict {
	return verdict{kind, metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)}
}

func no(kind v1alpha1.ConditionType, reason v1alpha1.Reason, format string, args ...any) verdict {
	return verdict{kind, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// verdicts decides the conditions of a policy from what the earlier phases found. It is a pure function.
func verdicts(s *scope) []verdict {
	if !s.view.Published && s.invalid == nil {
		return []verdict{
			accepted(s),
			{v1alpha1.ConditionInjected, metav1.ConditionUnknown, v1alpha1.ReasonReconciling, "The pods have not been looked at yet."},
			no(v1alpha1.ConditionProgrammed, v1alpha1.ReasonReconciling, "Generation %d has not been published to the pods yet.", s.policy.Generation),
			{v1alpha1.ConditionQuotaHealthy, metav1.ConditionUnknown, v1alpha1.ReasonReconciling, "The pods have not been looked at yet."},
		}
	}
	return []verdict{accepted(s), injected(s), programmed(s), quotaHealthy(s)}
}

func accepted(s *scope) verdict {
	const kind = v1alpha1.ConditionAccepted
	switch {
	case s.invalid != nil:
		return no(kind, v1alpha1.ReasonInvalid, "%v. What was enforced before stays in force.", s.invalid)
	case len(s.missing) > 0:
		return no(kind, v1alpha1.ReasonTargetNotFound, "%s not found in namespace %s: create it, or correct spec.targetRefs. Its pods are limited from their first request once it is there.",
			names(s.missing), s.policy.Namespace)
	case len(s.conflicts) > 0:
		var taken []string
		for _, c := range s.conflicts {
			taken = append(taken, fmt.Sprintf("spec.%s is taken from the older policy %s", c.field, c.elder))
		}
		return yes(kind, v1alpha1.ReasonConflicted, "Limits apply, but %s, which shares a target: write the same in both, or in the older one alone.", strings.Join(taken, ", and "))
	}
	return yes(kind, v1alpha1.ReasonAccepted, "The policy is understood and its targets exist.")
}

func injected(s *scope) verdict {
	const kind = v1alpha1.ConditionInjected
	v := &s.view
	switch {
	case s.outside != "":
		return no(kind, v1alpha1.ReasonNotInjectable, "Pods in namespace %s never get the sidecar: %s.", s.policy.Namespace, s.outside)
	case v.Pods == 0:
		return yes(kind, v1alpha1.ReasonNoPods, "There are no pods; those that are created get the sidecar.")
	case len(v.Bare) > 0 && len(s.manual)+len(s.refused) > 0:
		reason := v1alpha1.ReasonPodsWithoutSidecar
		if len(s.manual) == 0 {
			reason = v1alpha1.ReasonNotInjectable
		}
		return no(kind, reason, "%d of %d pods lack the sidecar and are not limited (%s): %s.", len(v.Bare), v.Pods, some(v.Bare), phrases(s.refused, s.manual))
	case len(v.Bare) > 0:
		return no(kind, v1alpha1.ReasonPodsWithoutSidecar, "%d of %d pods lack the sidecar and are not limited (%s): they are being replaced.", len(v.Bare), v.Pods, some(v.Bare))
	case len(s.refused) > 0:
		return no(kind, v1alpha1.ReasonNotInjectable, "All %d pods carry the sidecar, but the next ones will not: %s.", v.Pods, phrases(s.refused))
	case len(s.bypass) > 0:
		return no(kind, v1alpha1.ReasonBypassable, "Not all requests meet the limits: %s.", phrases(s.bypass))
	case len(s.manual)+len(s.outdated) > 0:
		return yes(kind, v1alpha1.ReasonSidecarOutdated, "All %d pods carry the sidecar; %s.", v.Pods, phrases(s.manual, s.outdated))
	}
	return yes(kind, v1alpha1.ReasonInjected, "All %d pods carry the sidecar.", v.Pods)
}

// phrases joins what a person should know, each once.
func phrases(lists ...[]string) string {
	all := slices.Concat(lists...)
	var out []string
	for _, p := range all {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return strings.Join(out, "; ")
}

func programmed(s *scope) verdict {
	const kind = v1alpha1.ConditionProgrammed
	v, generation := &s.view, s.policy.Generation
	switch {
	case s.invalid != nil:
		return no(kind, v1alpha1.ReasonReconciling, "Generation %d is invalid and not enforced.", generation)
	case v.Pods == 0 && len(s.missing) == len(s.targets):
		return no(kind, v1alpha1.ReasonReconciling, "There is nothing to enforce generation %d on: no target exists.", generation)
	case v.Pods == 0:
		return yes(kind, v1alpha1.ReasonProgrammed, "Generation %d will be enforced by every pod from its first request on; there are none now.", generation)
	case len(v.Waiting) > 0:
		return no(kind, v1alpha1.ReasonReconciling, "%d of %d pods have acknowledged generation %d; waiting for %s.", v.Acked, v.Pods, generation, some(v.Waiting))
	case len(v.Bare) > 0 || v.Acked == 0:
		return no(kind, v1alpha1.ReasonReconciling, "%d of %d pods have acknowledged generation %d.", v.Acked, v.Pods, generation)
	}
	return yes(kind, v1alpha1.ReasonProgrammed, "%d of %d pods have acknowledged generation %d.", v.Acked, v.Pods, generation)
}

func quotaHealthy(s *scope) verdict {
	const kind = v1alpha1.ConditionQuotaHealthy
	if n := len(s.view.Reserved); n > 0 {
		return no(kind, v1alpha1.ReasonReserved, "The share of %d pods is reserved, since nothing proves that they have ended: %s. If you know that POD has: kubectl headgate release POD -n %s, or kubectl annotate hrlp %s -n %[3]s --overwrite %s=POD",
			n, reservations(s.view.Reserved), s.policy.Namespace, s.policy.Name, v1alpha1.AnnotationRelease)
	}
	for _, l := range s.compiled.GetLimits() {
		if l.Scope == quotav1.Scope_PER_POD || l.Strategy == quotav1.Strategy_ADAPTIVE {
			continue // nothing is divided
		}
		if n := s.view.Limits[l.Id].N; uint64(n) > l.Burst {
			return no(kind, v1alpha1.ReasonDegraded, "Limit %s has %s for %d pods: an equal share is below one request, so it admits nothing. Raise it to at least the number of pods.", l.Name, most(l), n)
		}
	}
	return yes(kind, v1alpha1.ReasonHealthy, "All capacity is accounted for.")
}

// most names the number that a limit's shares are parts of.
func most(l *quotav1.Limit) string {
	if l.Algorithm == quotav1.Algorithm_CONCURRENCY {
		return fmt.Sprintf("maxInFlight %d", l.Burst)
	}
	return fmt.Sprintf("burst %d", l.Burst)
}

func names(ws []target.Workload) string {
	s := make([]string, len(ws))
	for i, w := range ws {
		s[i] = w.String()
	}
	return strings.Join(s, ", ")
}

// reservations says of at most three pods what their shares wait for.
func reservations(list []quota.Reservation) string {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = fmt.Sprintf("%s (%s)", r.Pod, r.Awaits)
	}
	return some(words)
}

// some names at most three of a list.
func some(list []string) string {
	if len(list) <= 3 {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:3], ", "), len(list)-3)
}
