// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

// Diagnose names the causes. What only follows from a cause that is named is left out.
func Diagnose(f *Facts) *Report {
	d := &diagnosis{Facts: f, Report: &Report{Findings: []Finding{}, Well: []Check{}}, explained: map[string]bool{}, sick: map[string]bool{}}
	d.operator()
	d.certificates()
	d.webhook()
	d.nodes()
	d.targets()
	d.bare()
	d.sidecars()
	d.conditions()
	d.clocks()
	d.versions()
	for _, b := range f.Blind {
		d.notice(Finding{Code: NotLookedAt, What: "not looked at: " + b.What, Why: b.Why,
			Do: "let somebody with the rights run this, or ask for the ClusterRole in docs/plugin.md"})
	}
	slices.SortStableFunc(d.Findings, func(a, b Finding) int { return cmp.Compare(rank[a.Level], rank[b.Level]) })
	return d.Report
}

var rank = map[Level]int{Problem: 0, Notice: 1}

// diagnosis is a report in the making.
type diagnosis struct {
	*Facts
	*Report
	// away says that no operator works, and why was found; refusing that its certificate keeps clients away; uncalled that pods
	// are created without the webhook, for a cause that was found.
	away, refusing, uncalled bool
	// explained are the policies of which a finding says why they are not as they should be, by key; sick are the nodes.
	explained, sick map[string]bool
}

// explain notes that a finding says what is wrong with the policies of a pod.
func (d *diagnosis) explain(pod *fleet.Pod) {
	for i := range d.Policies {
		if slices.ContainsFunc(d.Policies[i].Pods, func(p *fleet.Pod) bool { return p.Key() == pod.Key() }) {
			d.explained[d.Policies[i].Key()] = true
		}
	}
}

// pods lists the pods of all policies, each once, by name.
func (d *diagnosis) pods() []*fleet.Pod {
	seen := map[string]*fleet.Pod{}
	for i := range d.Policies {
		for _, p := range d.Policies[i].Pods {
			seen[p.Key()] = p
		}
	}
	out := make([]*fleet.Pod, 0, len(seen))
	for _, p := range seen {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *fleet.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	return out
}

// plural writes a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ago writes how long ago something was.
func (d *diagnosis) ago(t time.Time) string { return short(d.Now.Sub(t)) }

// short writes a duration with two units at most.
func short(t time.Duration) string {
	t = t.Abs()
	switch {
	case t < time.Second:
		return t.Round(time.Millisecond).String()
	case t < time.Minute:
		return t.Round(time.Second).String()
	case t < time.Hour:
		return strings.TrimSuffix(t.Round(time.Second).String(), "0s")
	case t < 48*time.Hour:
		return strings.TrimSuffix(t.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%d days", int(t.Hours()/24))
}
