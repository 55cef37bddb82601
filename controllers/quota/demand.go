// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Demand is the rate between a process's newest report and one of demandWindow ago. A report is remembered every demandStep.
const (
	demandWindow = 15 * time.Second
	demandStep   = 3 * time.Second
	// demandFresh is how old the newest report may be: a process that says nothing is asked for nothing.
	demandFresh = silence
	// demandKnown is how long a new leader listens before it says what is asked for: pods are still coming back to it.
	demandKnown = 10 * time.Second
)

// demand is what one process was asked for lately, whatever became of it, by limit id.
type demand map[string]*asked

// asked are counts of requests at some instants, oldest first.
type asked []count

type count struct {
	at       int64
	requests uint64
}

// note takes in a report.
func (d demand) note(limits []*quotav1.LimitUsage, now int64) {
	maps.DeleteFunc(d, func(_ string, a *asked) bool { return time.Duration(now-(*a)[len(*a)-1].at) > demandWindow })
	for _, l := range limits {
		a := d[l.LimitId]
		if a == nil {
			if len(d) >= maxUsage {
				continue
			}
			a = &asked{}
			d[l.LimitId] = a
		}
		requests := l.GetOffered()
		if l.Offered == nil {
			requests = l.GetAdmitted() + l.GetDenied() // an older sidecar: what it knows, in tokens
		}
		a.note(requests, now)
	}
}

func (a *asked) note(requests uint64, now int64) {
	s := *a
	n := len(s)
	switch {
	case n > 0 && requests < s[0].requests:
		s, n = nil, 0 // it counts anew
	case n > 0:
		requests = max(requests, s[n-1].requests)
	}
	if n >= 2 && time.Duration(s[n-1].at-s[n-2].at) < demandStep {
		s = s[:n-1]
	}
	s = append(s, count{now, requests})
	for len(s) > 2 && time.Duration(now-s[1].at) >= demandWindow {
		s = append(s[:0], s[1:]...)
	}
	*a = s
}

// perSecond is what the process is asked for at an instant; 0 where nothing is known.
func (d demand) perSecond(limit string, now int64) float64 {
	a := d[limit]
	if a == nil || len(*a) < 2 {
		return 0
	}
	first, last := (*a)[0], (*a)[len(*a)-1]
	if time.Duration(now-last.at) > demandFresh || last.at <= first.at {
		return 0
	}
	return float64(last.requests-first.requests) / time.Duration(last.at-first.at).Seconds()
}

// offering is a limit, its variants together, of the pods of one workload.
type offering struct{ limit, kind, name string }

// offered is what the pods of each workload are asked for, of each limit of a policy, in requests per second: those that were
// admitted, denied and made to wait alike. ok is false where this leader does not know yet. The lock is held.
func (h *Home) offered(p *policy, now int64) (out map[offering]float64, ok bool) {
	if time.Duration(now-h.since) < demandKnown {
		return nil, false
	}
	out = map[offering]float64{}
	for _, a := range p.accounts {
		for _, w := range p.targets {
			out[offering{a.limit.Name, w.Kind, w.Name}] = 0
		}
	}
	for _, pod := range h.pods {
		w, covered := pod.target(p)
		if !covered {
			continue
		}
		for _, process := range pod.processes {
			for id, a := range p.accounts {
				out[offering{a.limit.Name, w.Kind, w.Name}] += process.demand.perSecond(id, now)
			}
		}
	}
	return out, true
}
