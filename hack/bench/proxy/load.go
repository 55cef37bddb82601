// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// kase is one case: what the clients do.
type kase struct {
	name        string
	connections int
	path        string
	script      string // for wrk
	rpc         bool
	denied      float64 // the share that has to be denied
	limited     bool    // only contenders with limits take part
	goals       []goal
}

// result is one measurement of one contender.
type result struct {
	perSecond float64
	p50, p99  float64 // microseconds
	cpu       float64 // microseconds for each request, of the contender
	appCPU    float64
}

// keyScript sends one of 10,000 keys with each request.
const keyScript = `
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", nil, {["X-Api-Key"] = "key-" .. (n * 7919 % 10000)})
end
`

// mixScript sends nine of ten requests where they are denied.
const mixScript = `
local n = 0
request = function()
  n = n + 1
  if n % 10 == 0 then return wrk.format("GET", "/ok/128") end
  return wrk.format("GET", "/no/128")
end
`

// measure puts load on a contender.
func (s *setup) measure(ctx context.Context, c *contender, k kase, length time.Duration) (result, error) {
	before, appBefore := c.cpu(), s.app.cpu()
	var requests float64
	var r result
	var err error
	if k.rpc {
		r, requests, err = s.h2load(ctx, c, k, length)
	} else {
		r, requests, err = s.wrk(ctx, c, k, length)
	}
	if err != nil {
		return r, fmt.Errorf("%s, %s: %w\n%s", k.name, c.name, err, c.output.String())
	}
	r.cpu = float64((c.cpu() - before).Microseconds()) / requests
	r.appCPU = float64((s.app.cpu() - appBefore).Microseconds()) / requests
	return r, nil
}

var (
	wrkRequests = regexp.MustCompile(`(?m)^\s+(\d+) requests in`)
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)`)
	wrk50       = regexp.MustCompile(`(?m)^\s+50%\s+([\d.]+)(us|ms|s)`)
	wrk99       = regexp.MustCompile(`(?m)^\s+99%\s+([\d.]+)(us|ms|s)`)
	wrkOthers   = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkErrors   = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

func (s *setup) wrk(ctx context.Context, c *contender, k kase, length time.Duration) (result, float64, error) {
	args := []string{"-t1", fmt.Sprintf("-c%d", k.connections), fmt.Sprintf("-d%ds", max(1, int(length.Seconds()))), "--latency"}
	if k.script != "" {
		file := filepath.Join(s.folder, "script.lua")
		if err := os.WriteFile(file, []byte(k.script), 0o644); err != nil {
			return result{}, 0, err
		}
		args = append(args, "-s", file)
	}
	content, err := exec.CommandContext(ctx, "wrk", append(args, "http://"+c.http+k.path)...).CombinedOutput()
	if err != nil {
		return result{}, 0, fmt.Errorf("wrk: %w\n%s", err, content)
	}
	out := string(content)
	requests := number(wrkRequests, out)
	if requests == 0 {
		return result{}, 0, fmt.Errorf("nothing was served:\n%s", out)
	}
	if wrkErrors.MatchString(out) {
		return result{}, 0, fmt.Errorf("connections failed:\n%s", out)
	}
	if c.limits {
		if denied := number(wrkOthers, out) / requests; denied < k.denied-0.01 || denied > k.denied+0.01 {
			return result{}, 0, fmt.Errorf("%.3f of all were denied, want %.3f", denied, k.denied)
		}
	}
	return result{perSecond: number(wrkRate, out), p50: latency(wrk50, out), p99: latency(wrk99, out)}, requests, nil
}

var (
	h2Rate      = regexp.MustCompile(`finished in [\d.]+m?s, ([\d.]+) req/s`)
	h2Succeeded = regexp.MustCompile(`requests: .* (\d+) succeeded, (\d+) failed`)
)

func (s *setup) h2load(ctx context.Context, c *contender, k kase, length time.Duration) (result, float64, error) {
	file := filepath.Join(s.folder, "message")
	if err := os.WriteFile(file, make([]byte, 5), 0o644); err != nil { // an empty message
		return result{}, 0, err
	}
	content, err := exec.CommandContext(ctx, "h2load", fmt.Sprintf("-c%d", k.connections), "-m10", fmt.Sprintf("-D%d", max(1, int(length.Seconds()))),
		"-d", file, "-H", "te: trailers", "-H", "content-type: application/grpc", "http://"+c.rpc+k.path).CombinedOutput()
	if err != nil {
		return result{}, 0, fmt.Errorf("h2load: %w\n%s", err, content)
	}
	out := string(content)
	succeeded := h2Succeeded.FindStringSubmatch(out)
	if succeeded == nil || succeeded[1] == "0" || succeeded[2] != "0" {
		return result{}, 0, fmt.Errorf("calls failed:\n%s", out)
	}
	requests, _ := strconv.ParseFloat(succeeded[1], 64)
	return result{perSecond: number(h2Rate, out)}, requests, nil
}

func number(pattern *regexp.Regexp, out string) float64 {
	m := pattern.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n
}

// latency is in microseconds.
func latency(pattern *regexp.Regexp, out string) float64 {
	m := pattern.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n * map[string]float64{"us": 1, "ms": 1e3, "s": 1e6}[m[2]]
}
