// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// whileAway is why a missing operator matters.
const whileAway = "running pods go on with the shares they have; new pods start without the sidecar or wait, edits of policies reach nobody, and no share moves"

// operator looks at the Deployment, its pods and who leads.
func (d *diagnosis) operator() {
	o := &d.Operator
	where := []string{fmt.Sprintf("deployment/%s -n %s", o.Name, o.Namespace)}
	if o.Deployment == nil {
		if d.blind("operator") {
			return
		}
		d.away = true
		d.problem(Finding{Code: OperatorMissing, What: "the operator is not installed", Where: where, Why: whileAway,
			Do:       "install it; where it has another name or namespace, say so by --operator-namespace",
			Commands: []string{fmt.Sprintf("helm install headgate charts/headgate -n %s --create-namespace", o.Namespace)}})
		return
	}
	want, ready := int32(1), o.Deployment.Status.ReadyReplicas
	if o.Deployment.Spec.Replicas != nil {
		want = *o.Deployment.Spec.Replicas
	}
	switch {
	case want == 0:
		d.away = true
		d.problem(Finding{Code: OperatorScaledToZero, What: "the operator is scaled to 0", Where: where, Why: whileAway,
			Do:       "scale it up",
			Commands: []string{fmt.Sprintf("kubectl scale deployment/%s -n %s --replicas=2", o.Name, o.Namespace)}})
		return
	case ready == 0:
		d.away = true
		d.problem(Finding{Code: OperatorNotReady, What: fmt.Sprintf("none of %s of the operator is ready", plural(int(want), "replica")),
			Where: append(where, ailments(o.Pods)...), Why: whileAway,
			Do:       "look at what its pods wait for",
			Commands: []string{fmt.Sprintf("kubectl describe pods -n %s", o.Namespace), fmt.Sprintf("kubectl logs deployment/%s -n %s", o.Name, o.Namespace)}})
		return
	case ready < want:
		d.notice(Finding{Code: OperatorNotReady, What: fmt.Sprintf("%d of %s of the operator are ready", ready, plural(int(want), "replica")),
			Where: append(where, ailments(o.Pods)...), Why: "when the one that leads ends, a follower takes over only if there is one",
			Do: "look at what its pods wait for", Commands: []string{fmt.Sprintf("kubectl describe pods -n %s", o.Namespace)}})
	case want == 1:
		d.notice(Finding{Code: OperatorAlone, What: "the operator has one replica", Where: where,
			Why: "while it restarts new pods wait or start without the sidecar, and no share moves", Do: "run two",
			Commands: []string{fmt.Sprintf("kubectl scale deployment/%s -n %s --replicas=2", o.Name, o.Namespace)}})
	}
	d.leader(ready)
}

// leader looks at the Lease.
func (d *diagnosis) leader(ready int32) {
	l, o := &d.Lease, &d.Operator
	if d.blind("lease") {
		return
	}
	if l.Found && l.Holder != "" && l.Renewed {
		d.well("operator", fmt.Sprintf("%s ready, %s leads (epoch %s)", plural(int(ready), "replica"), l.Holder, l.Epoch))
		return
	}
	says := "nobody holds the lease"
	if l.Holder != "" {
		says = fmt.Sprintf("%s holds the lease and has not renewed it for %s: it is paused, or does not reach the API server", l.Holder, d.ago(l.Since))
	}
	d.away = true
	d.problem(Finding{Code: NobodyLeads, What: "no replica of the operator leads: " + says,
		Where: []string{fmt.Sprintf("lease/%s -n %s", o.Name, o.Namespace)},
		Why:   "pods go on with the shares they have; no share moves, and edits of policies reach nobody",
		Do:    "a follower takes over within 7 s; where none does, look at the logs, and restart the operator",
		Commands: []string{
			fmt.Sprintf("kubectl logs -n %s deployment/%s --all-pods --prefix --tail=50", o.Namespace, o.Name),
			fmt.Sprintf("kubectl rollout restart deployment/%s -n %s", o.Name, o.Namespace),
		}})
}

// blind reports whether something could not be looked at.
func (d *diagnosis) blind(what string) bool {
	return slices.ContainsFunc(d.Blind, func(b Blind) bool { return strings.HasPrefix(b.What, what) })
}

// ailments says of each pod that is not ready what it waits for.
func ailments(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		if says := ailment(&pods[i]); says != "" {
			out = append(out, fmt.Sprintf("pod %s: %s", pods[i].Name, says))
		}
	}
	return out
}

// ailment says what a pod waits for, or nothing.
func ailment(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if says := waiting(&c); says != "" {
			return "container " + c.Name + ": " + says
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return "it is not ready"
		}
	}
	return ""
}

// waiting says why a container does not run, or nothing.
func waiting(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing":
		return strings.TrimSpace(c.State.Waiting.Reason + " " + c.State.Waiting.Message)
	case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		return fmt.Sprintf("ended with status %d (%s)", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	}
	return ""
}
