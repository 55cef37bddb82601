// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine is what the figures were measured on.
type machine struct {
	Processor  string            `json:"processor"`
	Processors int               `json:"processors"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	Peers      map[string]string `json:"peers"`
	Load       string            `json:"load,omitempty"`
	Date       string            `json:"date"`
}

func describe() machine {
	m := machine{
		Processors: runtime.NumCPU(),
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		Date:       time.Now().UTC().Format(time.DateOnly),
		Peers:      map[string]string{},
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
	for name, args := range map[string][]string{nginx: {"nginx", "-v"}, haproxy: {"haproxy", "-v"}, caddy: {"caddy", "version"}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err == nil {
			line, _, _ := strings.Cut(string(out), "\n")
			m.Peers[name] = line
		}
	}
	return m
}

// row is one figure of one case.
type row struct {
	Case     string             `json:"case"`
	What     string             `json:"what"`
	Unit     string             `json:"unit"`
	Headgate float64            `json:"headgate"`
	Peers    map[string]float64 `json:"peers"`
	Peer     string             `json:"comparedWith,omitempty"`
	Ratio    float64            `json:"ratio,omitempty"`
	Goal     string             `json:"goal,omitempty"`
	Met      *bool              `json:"met,omitempty"`
}

type report struct {
	Machine machine `json:"machine"`
	Rounds  int     `json:"rounds"`
	Length  string  `json:"length"`
	Rows    []row   `json:"rows"`

	tables bytes.Buffer
}

// round keeps what a measurement can tell.
func round(f float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(f*scale) / scale
}

// add adds a case: a row for each figure, or for each goal about it.
func (r *report) add(k kase, all []figures) {
	r.table(k, all)
	us, through := find(all, ours), find(all, direct)
	if us == nil {
		return
	}
	if through == nil {
		through = &figures{rounds: make([]result, len(us.rounds))}
	}
	goals := k.goals
	for _, g := range []goal{throughput("", 0), processor("", 0)} {
		goals = append(goals, g)
	}
	for _, g := range goals {
		w := row{Case: k.name, What: g.what, Unit: g.unit, Peers: map[string]float64{}}
		for i := range all {
			f := &all[i]
			v := round(compare(f, through, g.value), 1)
			switch f.contender {
			case ours:
				w.Headgate = v
			default:
				w.Peers[f.contender] = v
			}
		}
		if peer := find(all, g.peer); peer != nil {
			var ratios []float64
			for i := range us.rounds {
				ratios = append(ratios, g.value(us.rounds[i], through.rounds[i])/g.value(peer.rounds[i], through.rounds[i]))
			}
			w.Peer, w.Ratio = g.peer, round(median(ratios), 2)
			met := g.most > 0 && w.Ratio <= g.most || g.least > 0 && w.Ratio >= g.least
			w.Goal, w.Met = fmt.Sprintf("<= %gx", g.most), &met
			if g.least > 0 {
				w.Goal = fmt.Sprintf(">= %gx", g.least)
			}
		} else if g.peer != "" {
			continue
		}
		r.Rows = append(r.Rows, w)
	}
}

// Most memory, in bytes.
const (
	goalIdle  = 12_000_000
	goalCrowd = 40_000_000
)

func (r *report) addMemory(all []memory) {
	idle := row{Case: memoryCase, What: "idle", Unit: "MB", Peers: map[string]float64{}, Goal: "<= 12 MB"}
	many := row{Case: memoryCase, What: fmt.Sprintf("%d connections", crowd), Unit: "MB", Peers: map[string]float64{}, Goal: "<= 40 MB"}
	for _, m := range all {
		if m.contender == ours {
			idle.Headgate, many.Headgate = round(megabytes(m.idle), 1), round(megabytes(m.crowd), 1)
			idleMet, manyMet := m.idle <= goalIdle, m.crowd <= goalCrowd
			idle.Met, many.Met = &idleMet, &manyMet
			continue
		}
		idle.Peers[m.contender], many.Peers[m.contender] = round(megabytes(m.idle), 1), round(megabytes(m.crowd), 1)
	}
	r.Rows = append(r.Rows, idle, many)
	fmt.Fprintf(&r.tables, "\n## Memory\n\n| contender | idle, MB | %d connections, MB |\n|---|---|---|\n", crowd)
	for _, m := range all {
		fmt.Fprintf(&r.tables, "| %s | %.1f | %.1f |\n", bold(m.contender), megabytes(m.idle), megabytes(m.crowd))
	}
}

func (r *report) table(k kase, all []figures) {
	fmt.Fprintf(&r.tables, "\n## %s\n\n| contender | requests/s | p50, us | p99, us | CPU, us/request | the application's CPU, us/request |\n|---|---|---|---|---|---|\n", k.name)
	for _, f := range all {
		p50, p99, cpu := fmt.Sprintf("%.0f", f.p50), fmt.Sprintf("%.0f", f.p99), fmt.Sprintf("%.1f", f.cpu)
		if k.rpc {
			p50, p99 = "", ""
		}
		if f.contender == direct {
			cpu = ""
		}
		fmt.Fprintf(&r.tables, "| %s | %.0f | %s | %s | %s | %.1f |\n", bold(f.contender), f.perSecond, p50, p99, cpu, f.appCPU)
	}
}

func bold(name string) string {
	if name == ours {
		return "**" + name + "**"
	}
	return name
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
	fmt.Fprint(&b, "# The sidecar and other proxies\n\n<!-- Written by make bench-proxy; do not edit. -->\n\n")
	fmt.Fprintf(&b, "%s, %d processors, %s, %s, load %s at the start, %s. %s; %s; Caddy %s.\n", m.Processor, m.Processors, m.System, m.Go, m.Load, m.Date,
		m.Peers[nginx], m.Peers[haproxy], m.Peers[caddy])
	fmt.Fprintf(&b, "Every contender has one worker. In each of %d rounds all of them are measured in turn for %s; figures are medians, ratios the medians of each round's.\n\n", r.Rounds, r.Length)
	fmt.Fprint(&b, "| case | figure | headgate | peer | ratio | goal | met |\n|---|---|---|---|---|---|---|\n")
	for _, w := range r.Rows {
		if w.Met == nil {
			continue
		}
		met := map[bool]string{true: "yes", false: "**no**"}[*w.Met]
		peer, ratio := "", ""
		if w.Peer != "" {
			peer, ratio = fmt.Sprintf("%.1f, %s", w.Peers[w.Peer], w.Peer), fmt.Sprintf("%.2fx", w.Ratio)
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f %s | %s | %s | %s | %s |\n", w.Case, w.What, w.Headgate, w.Unit, peer, ratio, w.Goal, met)
	}
	b.Write(r.tables.Bytes())
	fmt.Fprint(&b, notes)
	return b.Bytes()
}

const notes = `
## What is compared

- headgate is the program as it is shipped, with four limits in force, keyed by client address or header. nginx uses limit_req, haproxy stick-tables,
  ReverseProxy golang.org/x/time/rate. Caddy has no limiter in its standard build and only passes on. The blind relay is built on gnet and looks at nothing.
- The application is fasthttp, and grpc-go for gRPC. wrk and h2load run on the same processors, so that throughput also pays for them and for the
  application; CPU per request is the contender's own.
- "Added" latency is the contender's less that of the direct connection in the same round.
`
