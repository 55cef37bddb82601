// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"slices"
	"time"
)

// Crash is the forced end of a pod, after which requests to it may fail.
type Crash struct {
	Pod string
	At  time.Time
}

// Blind is how long after a crash a connection that no pod has named itself on may fail: for so long it may have been led
// to the dead pod, since kube-proxy hears of its end some moments later. Nobody can tell from outside.
const Blind = 2 * time.Second

// excuses reports whether a failure may come from the crash.
func (c Crash) excuses(a *Answer) bool {
	if !a.End.After(c.At) {
		return false
	}
	if a.Pod == "" {
		return a.Start.Before(c.At.Add(Blind))
	}
	return a.Pod == c.Pod
}

// Failures sorts the failed requests: those that were in flight on a pod that crashed, and those that nothing excuses.
func Failures(answers []Answer, crashes ...Crash) (lost, excused []Answer) {
	for i := range answers {
		a := &answers[i]
		switch {
		case !a.Failed():
		case slices.ContainsFunc(crashes, func(c Crash) bool { return c.excuses(a) }):
			excused = append(excused, *a)
		default:
			lost = append(lost, *a)
		}
	}
	return lost, excused
}

// Drought returns the longest time between two admissions, and when it began.
func Drought(answers []Answer) (longest time.Duration, from time.Time) {
	var admitted []time.Time
	for i := range answers {
		if answers[i].Admitted() {
			admitted = append(admitted, answers[i].End)
		}
	}
	slices.SortFunc(admitted, time.Time.Compare)
	for i := 1; i < len(admitted); i++ {
		if gap := admitted[i].Sub(admitted[i-1]); gap > longest {
			longest, from = gap, admitted[i-1]
		}
	}
	return longest, from
}

// String says what became of the request.
func (a *Answer) String() string {
	pod := a.Pod
	if pod == "" {
		pod = "a new connection"
	}
	what := fmt.Sprintf("status %d", a.Status)
	if a.Err != nil {
		what = a.Err.Error()
	}
	return fmt.Sprintf("%s +%s on %s: %s", a.Start.Format("15:04:05.000"), a.End.Sub(a.Start).Round(time.Millisecond), pod, what)
}
