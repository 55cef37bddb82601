// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/injector"
	"github.com/headgate/headgate/controllers/target"
)

// targets wants every workload that a policy names.
func (d *diagnosis) targets() {
	missing := 0
	for i := range d.Policies {
		p := &d.Policies[i]
		for _, w := range target.Of(&p.RateLimitPolicy) {
			if there, looked := d.Found[w]; there || !looked {
				continue
			}
			missing++
			d.explained[p.Key()] = true
			do := "create it, or correct spec.targetRefs"
			if names := d.Names[w.Namespace+"/"+w.Kind]; len(names) > 0 {
				do += fmt.Sprintf("; there is %s", strings.Join(some(nearest(w.Name, names)), ", "))
			}
			d.problem(Finding{Code: TargetMissing, What: fmt.Sprintf("the policy's target %s is not there", w),
				Where: []string{fmt.Sprintf("ratelimitpolicy/%s -n %s", p.Name, p.Namespace)},
				Why:   "the policy limits nothing of it; its pods are limited from their first request once it is there",
				Do:    do,
				Commands: []string{
					fmt.Sprintf("kubectl get %ss -n %s", strings.ToLower(w.Kind), w.Namespace),
					fmt.Sprintf("kubectl edit ratelimitpolicies.ratelimit.headgate.dev %s -n %s", p.Name, p.Namespace),
				}})
		}
	}
	if len(d.Policies) > 0 && missing == 0 {
		d.well("policies", plural(len(d.Policies), "policy")+" with targets that exist")
	}
}

// nearest sorts names by how much they begin or end like another.
func nearest(name string, names []string) []string {
	alike := func(a string) int {
		n := 0
		for n < len(a) && n < len(name) && a[n] == name[n] {
			n++
		}
		m := 0
		for m < len(a) && m < len(name) && a[len(a)-1-m] == name[len(name)-1-m] {
			m++
		}
		return -max(n, m)
	}
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int { return alike(a) - alike(b) })
	return out
}

// some names at most five of a list.
func some(list []string) []string {
	if len(list) <= 5 {
		return list
	}
	return append(slices.Clone(list[:5]), fmt.Sprintf("and %d more", len(list)-5))
}

// bare finds the pods that a policy covers and that carry no sidecar. Pods of one workload make one finding.
func (d *diagnosis) bare() {
	type group struct{ workload, why string }
	var order []group
	pods := map[group][]*fleet.Pod{}
	for _, p := range d.pods() {
		if p.Injected() || p.DeletionTimestamp != nil {
			continue
		}
		w, _ := p.Workload()
		g := group{w.String(), d.unable(p)}
		if pods[g] == nil {
			order = append(order, g)
		}
		pods[g] = append(pods[g], p)
		d.explain(p)
	}
	for _, g := range order {
		d.bareFinding(pods[g], g.why)
	}
}

func (d *diagnosis) bareFinding(pods []*fleet.Pod, unable string) {
	var where []string
	for _, p := range pods {
		where = append(where, fmt.Sprintf("pod/%s -n %s", p.Name, p.Namespace))
	}
	f := Finding{Code: PodWithoutSidecar, What: plural(len(pods), "pod") + " without the sidecar", Where: where,
		Why: "what reaches them is not limited, and comes on top of what the others admit"}
	w, owned := pods[0].Workload()
	restart := fmt.Sprintf("kubectl delete pod %s -n %s", pods[0].Name, pods[0].Namespace)
	if owned && w.Kind != "ReplicaSet" {
		restart = fmt.Sprintf("kubectl rollout restart %s/%s -n %s", strings.ToLower(w.Kind), w.Name, w.Namespace)
	}
	switch {
	case target.OptedOut(pods[0].Labels):
		f.Code, f.What = PodLeftAlone, f.What+", by their label"
		f.Do = fmt.Sprintf("nothing, if that is meant; else take the label %s away", v1alpha1.LabelInject)
		d.notice(f)
		return
	case unable != "":
		f.Do = "they cannot have it: " + unable
	case d.away || d.uncalled:
		f.Do = "mend the operator and its webhook first: it then replaces them, or says how"
	case d.NoRollouts:
		f.Do = "the installation lets the operator restart nothing (rollout.enabled: false): restart the workload"
		f.Commands = []string{restart}
	case d.manual(pods[0]):
		f.Do = "their policy, or the installation, leaves restarts to you (rollout: Manual): restart the workload"
		f.Commands = []string{restart}
	default:
		f.Do = "the operator replaces them; where it does not within a minute, restart the workload"
		f.Commands = []string{restart}
	}
	d.problem(f)
}

// unable says why a pod could not get the sidecar even now, or nothing.
func (d *diagnosis) unable(p *fleet.Pod) string {
	if d.Namespaces == nil {
		return ""
	}
	var in []corev1.Service
	for i := range d.Services {
		if d.Services[i].Namespace == p.Namespace {
			in = append(in, d.Services[i])
		}
	}
	plan, err := injector.PlanOf(d.covering(p), &p.Pod, injector.Surroundings{Services: injector.Selecting(in, p.Labels), Namespace: d.Namespaces[p.Namespace], Default: d.Default})
	if err == nil {
		_, err = injector.Inject(&p.Pod, injector.Config{}, plan)
	}
	if errors.Is(err, injector.ErrNotInjectable) {
		return strings.TrimPrefix(err.Error(), injector.ErrNotInjectable.Error()+": ")
	}
	return ""
}

func (d *diagnosis) covering(p *fleet.Pod) []*v1alpha1.RateLimitPolicy {
	var all []v1alpha1.RateLimitPolicy
	for i := range d.Policies {
		if d.Policies[i].Namespace == p.Namespace {
			all = append(all, d.Policies[i].RateLimitPolicy)
		}
	}
	return target.Policies(all, p.Owners)
}

func (d *diagnosis) manual(p *fleet.Pod) bool {
	policies := d.covering(p)
	return len(policies) > 0 && d.Default.Said(policies[0]).Rollout == v1alpha1.Manual
}

// conditions repeats what the operator says of policies of which no finding says it already.
func (d *diagnosis) conditions() {
	if d.away {
		return // they say how it was
	}
	for i := range d.Policies {
		p := &d.Policies[i]
		where := []string{fmt.Sprintf("ratelimitpolicy/%s -n %s", p.Name, p.Namespace)}
		describe := []string{fmt.Sprintf("kubectl describe ratelimitpolicies.ratelimit.headgate.dev %s -n %s", p.Name, p.Namespace)}
		if d.explained[p.Key()] {
			continue
		}
		if len(p.Status.Conditions) == 0 && d.Now.Sub(p.CreationTimestamp.Time) > begin {
			d.problem(Finding{Code: PolicyUnhealthy, What: "the operator has not looked at the policy", Where: where, Why: "it limits nothing",
				Do:       "look at the operator's logs",
				Commands: []string{fmt.Sprintf("kubectl logs -n %s deployment/%s --all-pods --prefix --tail=50", d.Operator.Namespace, d.Operator.Name)}})
		}
		for _, c := range p.Status.Conditions {
			if c.Status == metav1.ConditionFalse {
				d.problem(Finding{Code: PolicyUnhealthy, What: fmt.Sprintf("%s is False (%s)", c.Type, c.Reason), Where: where,
					Why: matters[v1alpha1.ConditionType(c.Type)], Do: c.Message, Commands: describe})
			}
		}
	}
}

// matters says why a condition matters.
var matters = map[v1alpha1.ConditionType]string{
	v1alpha1.ConditionAccepted:     "the policy, or this edit of it, is not enforced",
	v1alpha1.ConditionInjected:     "not every request meets the limits",
	v1alpha1.ConditionProgrammed:   "not every pod enforces what the policy says now",
	v1alpha1.ConditionQuotaHealthy: "less than the whole limit can be admitted",
}
