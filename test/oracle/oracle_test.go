// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/record"
	"github.com/headgate/headgate/test/oracle"
)

const id = "uid/all/0"

// limits: 10 per second, burst 5.
var limits = map[string]oracle.Limit{id: {Name: "all", Requests: 10, Period: time.Second, Burst: 5}}

func pod(times ...time.Duration) *record.File {
	f := &record.File{Pod: "p"}
	for _, t := range times {
		f.Decisions = append(f.Decisions, record.Decision{Time: int64(t), Limit: id, Cost: 1, Admitted: true})
	}
	return f
}

func every(n int, start, step time.Duration) []time.Duration {
	var out []time.Duration
	for i := range n {
		out = append(out, start+time.Duration(i)*step)
	}
	return out
}

func TestTheOracleFindsWhatBreaksTheLaw(t *testing.T) {
	tests := map[string]struct {
		files []*record.File
		kept  bool
	}{
		"nothing":                      {kept: true},
		"a burst":                      {files: []*record.File{pod(every(5, 0, 0)...)}, kept: true},
		"one more than a burst":        {files: []*record.File{pod(every(6, 0, 0)...)}},
		"a burst and the rate after":   {files: []*record.File{pod(append(every(5, 0, 0), every(100, 100*time.Millisecond, 100*time.Millisecond)...)...)}, kept: true},
		"a rate one per cent too high": {files: []*record.File{pod(append(every(5, 0, 0), every(1000, 99*time.Millisecond, 99*time.Millisecond)...)...)}},
		"two pods with a burst each":   {files: []*record.File{pod(every(5, 0, 0)...), pod(every(5, time.Millisecond, 0)...)}},
		"a pod that was killed and one that took its place too early": {files: []*record.File{
			pod(every(50, 0, 100*time.Millisecond)...), pod(append(every(5, 4900*time.Millisecond, 0), every(10, 5*time.Second, 100*time.Millisecond)...)...)}},
		"a rest, then a burst": {files: []*record.File{pod(append(every(5, 0, 0), every(5, time.Second, 0)...)...)}, kept: true},
		"a burst in the middle of a long quiet rate": {files: []*record.File{
			pod(every(100, 0, 200*time.Millisecond)...), pod(every(6, 10*time.Second, time.Millisecond)...)}},
		"a limit that nobody declared": {files: []*record.File{{Decisions: []record.Decision{{Limit: "other"}}}}},
		"a cost above the burst":       {files: []*record.File{{Decisions: []record.Decision{{Limit: id, Cost: 6, Admitted: true}}}}},
		"denied requests are free":     {files: []*record.File{{Decisions: []record.Decision{{Limit: id, Cost: 6}}}}, kept: true},
		"different keys have a burst each": {files: []*record.File{
			pod(every(5, 0, 0)...), {Decisions: []record.Decision{{Limit: id, Key: admission.KeyHash{1}, Cost: 5, Admitted: true}}}}, kept: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := oracle.Check(tc.files, limits)
			if r.Kept() != tc.kept {
				var b strings.Builder
				r.Fprint(&b)
				t.Errorf("kept = %v, want %v\n%s", r.Kept(), tc.kept, b.String())
			}
		})
	}
}

// The one-pass check must agree with looking at every pair of ends.
func TestTheOracleLooksAtEveryInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var times []time.Duration
		at := time.Duration(0)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 300), 1, 40).Draw(t, "gaps in ms") {
			at += time.Duration(gap) * time.Millisecond
			times = append(times, at)
		}
		kept := true
		for i := range times {
			for j := i; j < len(times); j++ {
				allowed := new(big.Rat).SetFrac64(int64(times[j]-times[i])*10*1001, int64(time.Second)*1000)
				allowed.Add(allowed, big.NewRat(5, 1))
				kept = kept && new(big.Rat).SetInt64(int64(j-i+1)).Cmp(allowed) <= 0
			}
		}
		if got := oracle.Check([]*record.File{pod(times...)}, limits).Kept(); got != kept {
			t.Fatalf("kept = %v, but looking at every interval says %v", got, kept)
		}
	})
}
