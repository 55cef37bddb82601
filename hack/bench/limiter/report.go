// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/headgate/headgate/limiter"
)

// machine is what the figures were measured on.
type machine struct {
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	System     string `json:"system"`
	Go         string `json:"go"`
	Clock      string `json:"clock"`
	Load       string `json:"load,omitempty"`
	Date       string `json:"date"`
}

func describe() machine {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		limiter.FastNow() // until it has measured the counter
	}
	m := machine{
		Processors: runtime.NumCPU(),
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		Clock:      limiter.ClockSource(),
		Date:       time.Now().UTC().Format(time.DateOnly),
	}
	if cpus, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(cpus)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	return m
}

// row is one case of the report.
type row struct {
	Case     string             `json:"case"`
	Unit     string             `json:"unit"`
	Headgate float64            `json:"headgate,omitempty"`
	Allocs   float64            `json:"allocs,omitempty"`
	Peers    map[string]float64 `json:"peers"`
	Best     string             `json:"bestPeer,omitempty"`
	Ratio    float64            `json:"ratio,omitempty"`
	Goal     string             `json:"goal,omitempty"`
	Met      *bool              `json:"met,omitempty"`

	order []string
}

type report struct {
	Machine machine `json:"machine"`
	Rows    []row   `json:"rows"`
}

// round keeps what a measurement can tell.
func round(f float64) float64 { return float64(int(f*10+0.5)) / 10 }

func (r *report) add(c contest, figures []figure) {
	w := row{Case: c.name, Unit: c.unit, Peers: map[string]float64{}}
	isOurs := false
	for _, f := range figures {
		fmt.Fprintf(os.Stderr, "%-50s %-45s %8.1f %s\n", c.name, f.name, f.value, c.unit)
		if f.name == ours {
			w.Headgate, w.Allocs, isOurs = round(f.value), round(f.allocs), true
			continue
		}
		w.Peers[f.name] = round(f.value)
		w.order = append(w.order, f.name)
		if w.Best == "" || w.Peers[f.name] < w.Peers[w.Best] {
			w.Best = f.name
		}
	}
	if !isOurs {
		w.Best = ""
	} else {
		w.Ratio = round(w.Peers[w.Best] / w.Headgate)
	}
	var goals []string
	met := w.Allocs == 0
	if c.goal > 0 {
		goals = append(goals, fmt.Sprintf("<= %g %s", c.goal, c.unit))
		met = met && w.Headgate <= c.goal
	}
	if c.ratio > 0 {
		goals = append(goals, fmt.Sprintf(">= %gx", c.ratio))
		met = met && w.Ratio >= c.ratio
	}
	if len(goals) > 0 {
		w.Goal, w.Met = strings.Join(goals, ", "), &met
	}
	r.Rows = append(r.Rows, w)
}

func (r *report) write(out, page string) error {
	if out != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := save(out, append(data, '\n')); err != nil {
			return err
		}
	}
	if page != "" {
		return save(page, r.page())
	}
	return nil
}

func save(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// page renders the report as a page of documentation.
func (r *report) page() []byte {
	var b bytes.Buffer
	m := r.Machine
	fmt.Fprint(&b, "# The limiter and its peers\n\n<!-- Written by make bench-limiter; do not edit. -->\n\n")
	fmt.Fprintf(&b, "%s, %d processors, %s, %s, FastNow reads %s, load %s, %s.\n", m.Processor, m.Processors, m.System, m.Go, m.Clock, m.Load, m.Date)
	fmt.Fprint(&b, "All contenders of a case run in turn in one process, many times over, each for a moment; the best of each counts. Times are wall time for each decision.\n")
	fmt.Fprint(&b, "Absolute figures depend on the machine, and the ratios less so: compare with the last table, which shows what the machine allows.\n\n")
	fmt.Fprint(&b, "| case | headgate | best peer | ratio | goal | met |\n|---|---|---|---|---|---|\n")
	for _, w := range r.Rows {
		if w.Headgate == 0 {
			continue
		}
		met := ""
		if w.Met != nil {
			met = map[bool]string{true: "yes", false: "no"}[*w.Met]
		}
		fmt.Fprintf(&b, "| %s | %.1f %s | %.1f, %s | %.1fx | %s | %s |\n", w.Case, w.Headgate, w.Unit, w.Peers[w.Best], w.Best, w.Ratio, w.Goal, met)
	}
	allocs := 0.0
	for _, w := range r.Rows {
		allocs = max(allocs, w.Allocs)
	}
	fmt.Fprintf(&b, "\nAllocations for each decision of headgate, at most over all cases: %.1f.\n", allocs)
	for _, w := range r.Rows {
		fmt.Fprintf(&b, "\n## %s\n\n| contender | %s |\n|---|---|\n", strings.ToUpper(w.Case[:1])+w.Case[1:], w.Unit)
		if w.Headgate > 0 {
			fmt.Fprintf(&b, "| **headgate** | **%.1f** |\n", w.Headgate)
		}
		for _, name := range w.order {
			fmt.Fprintf(&b, "| %s | %.1f |\n", name, w.Peers[name])
		}
	}
	fmt.Fprint(&b, notes)
	return b.Bytes()
}

const notes = `
## What is compared

- Hot limit: StripedBucket, which grants from credits of each processor and reads a clock only to renew them. Its resolution is an eighth of the burst at
  most. The peers decide exactly.
- One limit, exact at every request: TokenBucket with FastNow.
- Keys: Keyed with FastNow, asked by string. The keys are 15 bytes long and drawn beforehand. Each has a burst of a million and earns one an hour, so that
  no bucket is full again by its next request and all stores hold all keys; in the case that says so, each is full again, and ours has forgotten it.
- Memory is the reachable heap after filling each store, keys included.
- sethvargo/go-limiter and ulule/limiter count in fixed windows, and uber/ratelimit can only wait; they do less than a token bucket.
`
