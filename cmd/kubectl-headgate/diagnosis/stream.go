// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

// begin is how long a pod may take to start, and a stream to come back.
const begin = 10 * time.Second

// goesOn is why a sidecar that the operator does not hear matters.
const goesOn = "it goes on with the share that it has, which nobody else can use; no edit of a policy reaches it, and what is lent to where the demand is does not reach it"

// sidecars looks at what each sidecar says of itself. Pods with the same trouble make one finding.
func (d *diagnosis) sidecars() {
	connected, asked := 0, 0
	trouble := map[Code][]*fleet.Pod{}
	for _, p := range d.pods() {
		if !p.Injected() || p.DeletionTimestamp != nil || d.sick[p.Spec.NodeName] {
			continue
		}
		asked++
		code := d.trouble(p)
		if p.Answer.State != nil && p.Answer.State.Quota.Connected {
			connected++
		}
		if code != "" {
			trouble[code] = append(trouble[code], p)
			d.explain(p)
		}
	}
	for _, code := range []Code{SidecarNotRunning, SidecarFrozen, SidecarUnreachable, StreamRefused, StreamBlocked} {
		if pods := trouble[code]; pods != nil {
			d.problem(d.describe(code, pods))
		}
	}
	if asked > 0 && connected == asked {
		d.well("streams", plural(connected, "sidecar")+" connected to the operator")
	}
}

// trouble says what is wrong with a pod's sidecar, or nothing.
func (d *diagnosis) trouble(p *fleet.Pod) Code {
	if c := p.Sidecar(); c != nil && c.State.Running == nil && waiting(c) != "" {
		return SidecarNotRunning
	}
	if d.Now.Sub(p.CreationTimestamp.Time) < begin {
		return "" // it starts
	}
	switch p.Answer.Outcome {
	case fleet.Silent:
		return SidecarFrozen
	case fleet.Closed:
		return SidecarNotRunning
	case fleet.Unreachable:
		return SidecarUnreachable
	case fleet.Answered:
		q := &p.Answer.State.Quota
		switch {
		case q.Connected, d.away, q.LastError == "", p.Answer.State.Time.Sub(q.Since) < begin:
			return ""
		case strings.Contains(q.LastError, "x509") || strings.Contains(q.LastError, "certificate"):
			if d.refusing {
				return "" // the certificate was named
			}
			return StreamRefused
		case strings.Contains(q.LastError, "Unauthenticated") || strings.Contains(q.LastError, "PermissionDenied"):
			return StreamRefused
		}
		return StreamBlocked
	}
	return ""
}

// describe makes one finding of pods with the same trouble.
func (d *diagnosis) describe(code Code, pods []*fleet.Pod) Finding {
	first := pods[0]
	ns, name := first.Namespace, first.Name
	f := Finding{Code: code}
	for _, p := range pods {
		f.Where = append(f.Where, d.place(p))
	}
	these := plural(len(pods), "sidecar")
	switch code {
	case SidecarNotRunning:
		f.What = these + " not running"
		f.Why = "its pod is not ready, so it gets no requests"
		f.Do = "look at why its container does not run"
		f.Commands = []string{fmt.Sprintf("kubectl logs %s -n %s -c headgate --previous", name, ns), fmt.Sprintf("kubectl describe pod %s -n %s", name, ns)}
	case SidecarFrozen:
		f.What = these + " frozen: the container runs, takes questions and answers none; it is paused, or gets no CPU"
		f.Why = "requests to its pod hang, and its share stays reserved: it may go on at any moment"
		f.Do = "let it go on, if somebody has paused it; else replace the pod"
		f.Commands = []string{fmt.Sprintf("kubectl delete pod %s -n %s", name, ns)}
	case SidecarUnreachable:
		f.What = these + " out of reach: the API server does not get through to the pod's kubelet"
		f.Why = "nobody can say what it enforces, and logs and metrics of its node are out of reach, too"
		f.Do = "look at the node, and at the way from the API server to its kubelet (port 10250)"
		f.Commands = []string{fmt.Sprintf("kubectl describe node %s", first.Spec.NodeName)}
	case StreamRefused:
		f.What = these + " turned away by the operator"
		f.Why = goesOn
		f.Do = "it has another authority or token than the operator expects: look at both logs; a new pod gets both anew"
		f.Commands = []string{fmt.Sprintf("kubectl logs %s -n %s -c headgate --tail=20", name, ns), fmt.Sprintf("kubectl delete pod %s -n %s", name, ns)}
	case StreamBlocked:
		f.What = these + " cut off from the operator, which is there: something on the way drops the packets"
		f.Why = goesOn
		f.Do = fmt.Sprintf("let the pod reach port %d of the operator's pods: look at NetworkPolicies%s, at packet filters in the pod and on its node, and at the mesh",
			portQuota, d.suspects(networkingv1.PolicyTypeEgress, ns, first.Labels))
		f.Commands = []string{
			fmt.Sprintf("kubectl get networkpolicies -n %s", ns),
			fmt.Sprintf("kubectl debug %s -n %s -it --image=busybox --profile=restricted -- nc -zvw3 %s.%s.svc %d", name, ns, d.Operator.Name, d.Operator.Namespace, portQuota),
		}
	}
	return f
}

// place says where a pod is, and what it says itself.
func (d *diagnosis) place(p *fleet.Pod) string {
	out := fmt.Sprintf("pod/%s -n %s on %s", p.Name, p.Namespace, p.Spec.NodeName)
	switch c := p.Sidecar(); {
	case p.Answer.State != nil:
		q := &p.Answer.State.Quota
		return fmt.Sprintf("%s: for %s; %s", out, short(p.Answer.State.Time.Sub(q.Since)), q.LastError)
	case c != nil && waiting(c) != "":
		return out + ": " + waiting(c)
	case p.Answer.Outcome == fleet.Unreachable:
		return out + ": " + p.Answer.Error
	}
	return out
}

// suspects names NetworkPolicies that restrict what a pod reaches, or what reaches it; labels nil = any pod.
func (d *diagnosis) suspects(kind networkingv1.PolicyType, namespace string, pod map[string]string) string {
	var names []string
	for i := range d.Networks {
		n := &d.Networks[i]
		if n.Namespace != namespace || !restricts(n, kind) {
			continue
		}
		if s, err := metav1.LabelSelectorAsSelector(&n.Spec.PodSelector); err == nil && (pod == nil || s.Matches(labels.Set(pod))) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " (" + strings.Join(names, ", ") + ")"
}

func restricts(n *networkingv1.NetworkPolicy, kind networkingv1.PolicyType) bool {
	if len(n.Spec.PolicyTypes) == 0 {
		return kind == networkingv1.PolicyTypeIngress || len(n.Spec.Egress) > 0
	}
	return slices.Contains(n.Spec.PolicyTypes, kind)
}
