// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// figures are the medians of a contender in a case.
type figures struct {
	contender string
	rounds    []result
	result
}

// contest measures a case for all who take part, in turn, several times over.
func (s *setup) contest(ctx context.Context, k kase, o options) ([]figures, error) {
	var all []figures
	for _, c := range s.contenders {
		if k.rpc && c.rpc == "" || k.limited && !c.limits || len(o.contenders) > 0 && !slices.Contains(o.contenders, c.name) {
			continue
		}
		all = append(all, figures{contender: c.name})
		if _, err := s.measure(ctx, c, k, time.Second); err != nil { // connections, caches
			return nil, err
		}
	}
	for range o.rounds {
		for i := range all {
			f := &all[i]
			c := s.contenders[slices.IndexFunc(s.contenders, func(c *contender) bool { return c.name == f.contender })]
			r, err := s.measure(ctx, c, k, o.length)
			if err != nil {
				return nil, err
			}
			f.rounds = append(f.rounds, r)
		}
	}
	for i := range all {
		f := &all[i]
		f.result = result{
			perSecond: f.median(func(r result) float64 { return r.perSecond }),
			p50:       f.median(func(r result) float64 { return r.p50 }),
			p99:       f.median(func(r result) float64 { return r.p99 }),
			cpu:       f.median(func(r result) float64 { return r.cpu }),
			appCPU:    f.median(func(r result) float64 { return r.appCPU }),
		}
		fmt.Fprintf(os.Stderr, "%-45s %-18s %9.0f/s  p50 %7.0f us  p99 %7.0f us  cpu %6.1f us  (application %5.1f us)\n",
			k.name, f.contender, f.perSecond, f.p50, f.p99, f.cpu, f.appCPU)
	}
	return all, nil
}

func (f *figures) median(of func(result) float64) float64 {
	var all []float64
	for _, r := range f.rounds {
		all = append(all, of(r))
	}
	return median(all)
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// find returns the figures of a contender, nil when it did not take part.
func find(all []figures, name string) *figures {
	for i := range all {
		if all[i].contender == name {
			return &all[i]
		}
	}
	return nil
}

// compare is the median over the rounds of what two contenders that were measured one after the other tell.
func compare(a, b *figures, of func(a, b result) float64) float64 {
	var all []float64
	for i := range a.rounds {
		all = append(all, of(a.rounds[i], b.rounds[i]))
	}
	return median(all)
}
