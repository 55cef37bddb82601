// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter turns what sidecars say at two moments into rates: what kubectl headgate top shows. It is pure.
package meter

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
)

// Sample is what the sidecars of some pods said, by pod (namespace/name).
type Sample map[string]fleet.Answer

// Row is one limit over the time between two samples, in all pods or in one.
type Row struct {
	Policy string `json:"policy"` // namespace/name
	Limit  string `json:"limit"`  // name, or name/variant
	Pod    string `json:"pod,omitempty"`
	Pods   int    `json:"pods"`
	// Requests per second: offered = admitted + denied. Those that a limit in shadow mode would deny count as denied.
	Offered  float64 `json:"offered"`
	Admitted float64 `json:"admitted"`
	Denied   float64 `json:"denied"`
	// Most is what may be admitted: tokens per second, or requests at once where InFlight is there.
	Most     float64 `json:"most"`
	InFlight *uint64 `json:"inFlight,omitempty"`
	// Use of Most, 1 = all of it; absent where each key has the limit to itself.
	Use *float64 `json:"use,omitempty"`
	// Keys that are remembered, of a limit with a key.
	Keys   *int `json:"keys,omitempty"`
	Shadow bool `json:"shadow,omitempty"`
	PerPod bool `json:"perPod,omitempty"`

	tokens float64 // admitted per second
}

// Rates compares two samples. Only the policies that keep accepts count; withPods adds a row for each pod behind its limit's.
// What a pod did before it was first seen, or before it restarted, is not known, and does not count.
func Rates(before, after Sample, keep func(namespace, name string) bool, withPods bool) []Row {
	totals := map[[2]string]*Row{}
	members := map[[2]string][]Row{}
	for pod, now := range after {
		was, ok := before[pod]
		if !ok || now.State == nil || was.State == nil || now.State.Incarnation != was.State.Incarnation {
			continue
		}
		seconds := now.At.Sub(was.At).Seconds()
		if seconds <= 0 {
			continue
		}
		limits := counters(was.State)
		each(now.State, func(p *admission.PolicyState, l *admission.LimitState) {
			if !keep(p.Namespace, p.Name) {
				return
			}
			row := rate(p, l, limits[l.ID+"/"+l.Label()], seconds)
			row.Pod = pod
			key := [2]string{row.Policy, row.Limit}
			total := totals[key]
			if total == nil {
				total = &Row{Policy: row.Policy, Limit: row.Limit}
				totals[key] = total
			}
			total.add(&row, l)
			members[key] = append(members[key], row)
		})
	}
	return order(totals, members, withPods)
}

// each visits every limit of a pod.
func each(s *admin.State, visit func(*admission.PolicyState, *admission.LimitState)) {
	for i := range s.Policies {
		for j := range s.Policies[i].Limits {
			visit(&s.Policies[i], &s.Policies[i].Limits[j])
		}
	}
}

func counters(s *admin.State) map[string]admission.LimitState {
	out := map[string]admission.LimitState{}
	each(s, func(_ *admission.PolicyState, l *admission.LimitState) { out[l.ID+"/"+l.Label()] = *l })
	return out
}

// rate is one limit in one pod. Counters that have gone back began anew: the limit was replaced.
func rate(p *admission.PolicyState, now *admission.LimitState, was admission.LimitState, seconds float64) Row {
	per := func(now, was uint64) float64 {
		if now < was {
			was = 0
		}
		return float64(now-was) / seconds
	}
	row := Row{
		Policy: p.Namespace + "/" + p.Name, Limit: now.Label(), Pods: 1,
		Admitted: per(now.Allowed, was.Allowed), Denied: per(now.Denied, was.Denied), tokens: per(now.AllowedCost, was.AllowedCost),
		Most: now.RatePerSecond, InFlight: now.InFlight, Keys: now.Keys, Shadow: now.Shadow,
	}
	if now.Lent != nil {
		row.Most = whole(now) // what is lent goes to where the demand is: all of it, if need be
	}
	if row.InFlight != nil {
		row.Most = now.ShareBurst
	}
	row.finish()
	return row
}

// finish fills in what follows from the rest.
func (r *Row) finish() {
	r.Offered = r.Admitted + r.Denied
	r.Use = nil
	if r.Keys != nil || r.Most <= 0 {
		return
	}
	used := r.tokens
	if r.InFlight != nil {
		used = float64(*r.InFlight)
	}
	r.Use = new(used / r.Most)
}

// add adds a pod to the whole.
func (r *Row) add(pod *Row, l *admission.LimitState) {
	r.Pods++
	r.Admitted += pod.Admitted
	r.Denied += pod.Denied
	r.tokens += pod.tokens
	r.Shadow = r.Shadow || pod.Shadow
	if pod.InFlight != nil {
		if r.InFlight == nil {
			r.InFlight = new(uint64)
		}
		*r.InFlight += *pod.InFlight
	}
	if pod.Keys != nil {
		if r.Keys == nil {
			r.Keys = new(int)
		}
		*r.Keys = max(*r.Keys, *pod.Keys) // a key may be known to several pods
	}
	whole := whole(l)
	if r.PerPod = l.Scope == perPod; r.PerPod {
		r.Most += whole
	} else {
		r.Most = whole
	}
	r.finish()
}

// perPod is how a sidecar writes the scope of a limit that each pod has to itself.
const perPod = "PER_POD"

// whole is a limit's number, of all pods together.
func whole(l *admission.LimitState) float64 {
	if l.InFlight != nil {
		return float64(l.Burst)
	}
	period, err := time.ParseDuration(l.Period)
	if err != nil || period <= 0 {
		return 0
	}
	return float64(l.Requests) / period.Seconds()
}

func order(totals map[[2]string]*Row, members map[[2]string][]Row, withPods bool) []Row {
	keys := make([][2]string, 0, len(totals))
	for k := range totals {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	out := []Row{}
	for _, k := range keys {
		out = append(out, *totals[k])
		if withPods {
			slices.SortFunc(members[k], func(a, b Row) int { return cmp.Compare(a.Pod, b.Pod) })
			out = append(out, members[k]...)
		}
	}
	return out
}
