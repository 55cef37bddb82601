// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/load"
)

// stageOf is a stage whose pods have recorded the times, in milliseconds, of what they admitted.
func stageOf(t *testing.T, admitted ...int64) *stage {
	t.Helper()
	s := &stage{records: t.TempDir(), policy: &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: appName, Namespace: namespace, UID: "uid"},
		Spec: v1alpha1.RateLimitPolicySpec{Limits: []v1alpha1.Limit{
			{Name: "whole-service", Rate: v1alpha1.Rate{Requests: 10, Per: "1s"}, Burst: new(int64(2))},
		}},
	}}
	compiled, err := compile.Policy(s.policy, "")
	if err != nil {
		t.Fatal(err)
	}
	for pod, limit := range map[string]string{namespace + "/pod": compiled.Limits[0].Id, "other/pod": "a limit of somebody else"} {
		w, err := record.Create(s.records, pod, "A")
		if err != nil {
			t.Fatal(err)
		}
		for _, ms := range admitted {
			w.Decision(ms*1e6, limit, admission.KeyHash{}, 1, true)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func answers(n, status int) []load.Answer {
	out := make([]load.Answer, n)
	for i := range out {
		out[i].Status = status
	}
	return out
}

func TestTheLawIsJudgedByWhatPodsRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		admitted []int64
		seen     int
		kept     bool
	}{
		"a burst and the rate":          {admitted: []int64{0, 0, 100, 200}, seen: 4, kept: true},
		"more than a burst":             {admitted: []int64{0, 0, 0}, seen: 3},
		"nothing was recorded":          {},
		"fewer records than answers":    {admitted: []int64{0, 0}, seen: 3},
		"more records than answers":     {admitted: []int64{0, 0}, seen: 1, kept: true},
		"a rate that is a bit too high": {admitted: []int64{0, 0, 100, 200, 299}, seen: 5},
	} {
		t.Run(name, func(t *testing.T) {
			err := stageOf(t, tc.admitted...).judgeLaw(&seen{answers: answers(tc.seen, 200)})
			if (err == nil) != tc.kept {
				t.Errorf("error %v, kept should be %v", err, tc.kept)
			}
		})
	}
}

func TestOnlyFailuresOnTheDeletedPodAreForgiven(t *testing.T) {
	at := time.Now()
	failure := func(pod string) load.Answer {
		return load.Answer{Pod: pod, Start: at, End: at.Add(time.Millisecond), Err: errors.New("connection reset")}
	}
	for name, tc := range map[string]struct {
		answers  []load.Answer
		forgiven bool
	}{
		"denials are no failures":      {answers(5, 429), true},
		"in flight on the deleted pod": {[]load.Answer{failure("deleted")}, true},
		"in flight on another pod":     {[]load.Answer{failure("deleted"), failure("alive")}, false},
		"an error of the proxy":        {answers(1, 502), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&stage{}).judgeFailures(&seen{answers: tc.answers, crash: load.Crash{Pod: "deleted", At: at}})
			if (err == nil) != tc.forgiven {
				t.Errorf("error %v, forgiven should be %v", err, tc.forgiven)
			}
		})
	}
}

// Where the nodes' disks are out of sight, what clients saw in total is judged.
func TestTheTotalIsJudgedWithoutRecords(t *testing.T) {
	s := stageOf(t)
	s.records = ""
	at := time.Now()
	for n, kept := range map[int]bool{0: true, 22: true, 23: false} {
		err := s.judgeLaw(&seen{answers: answers(n, 200), begin: at, end: at.Add(2 * time.Second)})
		if (err == nil) != kept {
			t.Errorf("%d admitted in 2 s: error %v, kept should be %v", n, err, kept)
		}
	}
}
