// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview says in a person's words how policies stand: what kubectl headgate status prints. It is pure.
package overview

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/controllers/target"
)

// Policy is how one policy stands.
type Policy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State in a word or two.
	State   string   `json:"state"`
	Targets []string `json:"targets"`
	// Pods there are, Enforcing of them acknowledged this generation (as the operator says), Connected of them have a stream to
	// the operator (as they say themselves); absent when they were not asked.
	Pods      int  `json:"pods"`
	Enforcing int  `json:"enforcing"`
	Connected *int `json:"connected,omitempty"`
	// Generation asked for, and Behind: how many pods say that they enforce an older one.
	Generation int64     `json:"generation"`
	Behind     int       `json:"behind,omitempty"`
	Share      string    `json:"share,omitempty"` // one pod's part of the first limit
	Limits     []Limit   `json:"limits"`
	Troubles   []Trouble `json:"troubles,omitempty"`
	Members    []Pod     `json:"members"`
}

// Limit is how one limit is shared.
type Limit struct {
	Name     string `json:"name"`
	Contract string `json:"contract,omitempty"`
	Share    string `json:"share,omitempty"`
	Pods     int32  `json:"pods"`
}

// Trouble is what is wrong, and what to do.
type Trouble struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// Pod is one pod of a policy.
type Pod struct {
	Name  string `json:"name"`
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// Sidecar says how its sidecar does.
	Sidecar    string `json:"sidecar"`
	Generation int64  `json:"generation,omitempty"`
	Share      string `json:"share,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Of says how a policy stands at a time of this machine's clock.
func Of(p *fleet.Policy, now time.Time) Policy {
	out := Policy{
		Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Share: p.Status.Summary.Share,
		Pods: len(p.Pods), Limits: []Limit{}, Members: []Pod{}, State: state(&p.RateLimitPolicy), Troubles: troubles(&p.RateLimitPolicy),
	}
	for _, w := range target.Of(&p.RateLimitPolicy) {
		out.Targets = append(out.Targets, w.String())
	}
	if enforcing, _, ok := strings.Cut(p.Status.Summary.Pods, "/"); ok {
		_, _ = fmt.Sscan(enforcing, &out.Enforcing)
	}
	for _, l := range p.Status.Limits {
		limit := Limit{Name: l.Name, Contract: l.Contract, Share: l.Share}
		if l.Pods != nil {
			limit.Pods = *l.Pods
		}
		out.Limits = append(out.Limits, limit)
	}
	connected, asked := 0, false
	for _, pod := range p.Pods {
		m := member(pod, p, now)
		out.Members = append(out.Members, m)
		asked = asked || pod.Answer.Outcome != fleet.NotAsked
		if s := pod.Answer.State; s != nil && s.Quota.Connected {
			connected++
		}
		if m.Generation > 0 && m.Generation < p.Generation {
			out.Behind++
		}
	}
	if asked {
		out.Connected = &connected
	}
	return out
}

// member says how one pod does.
func member(pod *fleet.Pod, p *fleet.Policy, now time.Time) Pod {
	out := Pod{Name: pod.Name, Node: pod.Spec.NodeName, Ready: fleet.Ready(&pod.Pod), Sidecar: sidecar(pod, now)}
	if pod.Answer.State != nil {
		out.Version = pod.Answer.State.Version
	}
	if s := pod.Enforced(&p.RateLimitPolicy); s != nil {
		out.Generation = s.Generation
		if len(s.Limits) > 0 {
			l := &s.Limits[0]
			out.Share = fmt.Sprintf("%.4g/s", l.RatePerSecond)
			if l.InFlight != nil {
				out.Share = fmt.Sprintf("%.4g at once", l.ShareBurst)
			}
		}
	}
	return out
}

// sidecar says how a pod's sidecar does.
func sidecar(pod *fleet.Pod, now time.Time) string {
	switch {
	case !pod.Injected():
		return "none: not limited"
	case pod.DeletionTimestamp != nil:
		return "ending"
	}
	switch a := &pod.Answer; a.Outcome {
	case fleet.Silent:
		return "does not answer"
	case fleet.Closed:
		return "not running"
	case fleet.Unreachable:
		return "out of reach"
	case fleet.Forbidden:
		return "no right to ask"
	case fleet.NotAsked:
		return "not asked"
	default:
		q := &a.State.Quota
		length := a.State.Time.Sub(q.Since).Round(time.Second)
		if a.State.Time.IsZero() {
			length = now.Sub(q.Since).Round(time.Second)
		}
		if q.Connected {
			return fmt.Sprintf("connected for %s", length)
		}
		return fmt.Sprintf("cut off for %s: %s", length, q.LastError)
	}
}

// state is how a policy stands, in a word or two: the first thing that is wrong.
func state(p *v1alpha1.RateLimitPolicy) string {
	if len(p.Status.Conditions) == 0 || stale(p) {
		return "Unseen"
	}
	for _, kind := range order {
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		if words, ok := words[v1alpha1.Reason(c.Reason)]; ok {
			return words.state
		}
		return "Waiting"
	}
	if p.Spec.Mode == v1alpha1.ModeShadow {
		return "Shadow"
	}
	return "Enforced"
}

var order = []v1alpha1.ConditionType{v1alpha1.ConditionAccepted, v1alpha1.ConditionInjected, v1alpha1.ConditionProgrammed, v1alpha1.ConditionQuotaHealthy}

// words say in a person's words what a reason means.
var words = map[v1alpha1.Reason]struct{ state, what string }{
	v1alpha1.ReasonInvalid:            {"Refused", "The policy says what cannot be enforced."},
	v1alpha1.ReasonTargetNotFound:     {"No target", "A workload that it targets is not there."},
	v1alpha1.ReasonConflicted:         {"Conflict", "An older policy on the same workload asks for another injection."},
	v1alpha1.ReasonPodsWithoutSidecar: {"Partly", "Some pods are not limited."},
	v1alpha1.ReasonBypassable:         {"Partly", "There is a way around the sidecar."},
	v1alpha1.ReasonNotInjectable:      {"Partly", "Some pods cannot be limited as things are."},
	v1alpha1.ReasonReconciling:        {"Waiting", "Not every pod enforces this generation yet."},
	v1alpha1.ReasonReserved:           {"Reserved", "The share of a pod that cannot be reached is kept for it."},
	v1alpha1.ReasonDegraded:           {"Too small", "The limit is too small for so many pods."},
	v1alpha1.ReasonSidecarOutdated:    {"Outdated", "Some pods have an older sidecar than new ones get."},
}

// troubles says what is wrong with a policy. What the operator writes into a condition's message says what to do.
func troubles(p *v1alpha1.RateLimitPolicy) []Trouble {
	if len(p.Status.Conditions) == 0 || stale(p) {
		return []Trouble{{fmt.Sprintf("No operator has looked at generation %d.", p.Generation), "kubectl headgate doctor -n " + p.Namespace}}
	}
	var out []Trouble
	for _, kind := range order {
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if c == nil {
			continue
		}
		w, known := words[v1alpha1.Reason(c.Reason)]
		switch {
		case known:
			out = append(out, Trouble{w.what, c.Message})
		case c.Status != metav1.ConditionTrue:
			out = append(out, Trouble{fmt.Sprintf("%s is %s (%s).", c.Type, c.Status, c.Reason), c.Message})
		}
	}
	return out
}

// stale reports whether the conditions are of an older generation.
func stale(p *v1alpha1.RateLimitPolicy) bool {
	for _, c := range p.Status.Conditions {
		if c.ObservedGeneration < p.Generation {
			return true
		}
	}
	return false
}
