// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command quota measures how a limit that is lent is used, in the simulator that runs the leader and the pods as they are
// shipped, beside models of other ways to share a limit.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/limiter/escrow/sim"
)

func main() {
	out := flag.String("json", "bin/bench/quota.json", "file for the figures")
	page := flag.String("page", "docs/benchmarks/quota.md", "page to write")
	seed := flag.Uint64("seed", 1, "of the simulation")
	flag.Parse()
	if err := run(*out, *page, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "bench-quota:", err)
		os.Exit(1)
	}
}

func run(out, page string, seed uint64) error {
	r := measure(seed)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	if err := write(out, append(b, '\n')); err != nil {
		return err
	}
	if err := write(page, r.page()); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Broken != "" {
			return fmt.Errorf("%s: %s", row.Scenario, row.Broken)
		}
	}
	return nil
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// measure runs every scenario, and the peers where they can play a part.
func measure(seed uint64) *report {
	r := &report{Seed: seed}
	for _, rate := range []uint64{1_000, 10_000} {
		for i, s := range sim.Scenarios(rate) {
			m := sim.Measure(s, seed)
			w := newRow(s, m)
			if i == 2 {
				w.BackAfterMilliseconds = slowest(s, m)
			}
			r.Rows = append(r.Rows, w)
			if s.Leader {
				continue
			}
			for _, peer := range []sim.Peer{sim.EvenSplit(), sim.Leases(), sim.Optimistic()} {
				p := newRow(s, sim.MeasurePeer(s, peer, seed))
				p.Peer, p.Broken = peer.Name(), ""
				r.Peers = append(r.Peers, p)
			}
		}
	}
	r.Rows = append(r.Rows, newRow(sim.Pinned(), sim.Measure(sim.Pinned(), seed)))
	r.Hourly, r.HourlyBroken = sim.Hourly(seed)
	return r
}

// slowest is how long after a jump it took at most until 95 % of the limit was admitted again.
func slowest(s sim.Scenario, m sim.Result) float64 {
	worst := int64(0)
	for at := int64(0); at < s.Lasts; at += 2_000_000_000 {
		worst = max(worst, m.BackAt(s.Limit, at))
	}
	return float64(worst) / 1e6
}
