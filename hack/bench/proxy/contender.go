// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contender is something that stands between the clients and the application, or nothing.
type contender struct {
	name string
	http string // host:port
	rpc  string // of gRPC, empty when it is not measured
	// limits tells that it denies; none does all cases.
	limits  bool
	process *exec.Cmd
	output  bytes.Buffer
}

// Names of contenders.
const (
	ours    = "headgate"
	direct  = "direct"
	nginx   = "nginx"
	haproxy = "haproxy"
	caddy   = "caddy"
	goProxy = "ReverseProxy"
	blind   = "gnet, blind relay"
)

// start runs a program that ends with this one.
func (c *contender) start(env []string, name string, args ...string) error {
	c.process = exec.Command(name, args...)
	c.process.Env = append(os.Environ(), env...)
	c.process.Stdout, c.process.Stderr = &c.output, &c.output
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := c.process.Start(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	for _, address := range []string{c.http, c.rpc} {
		if address == "" {
			continue
		}
		if err := await(address); err != nil {
			c.stop()
			return fmt.Errorf("%s: %w\n%s", c.name, err, c.output.String())
		}
	}
	return nil
}

func (c *contender) stop() {
	if c.process == nil || c.process.Process == nil {
		return
	}
	_ = c.process.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { _ = c.process.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-c.process.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

// await waits until somebody accepts.
func await(address string) error {
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(give) {
			return err
		}
	}
}

// processes are the contender's process and its children.
func (c *contender) processes() []int {
	if c.process == nil {
		return nil
	}
	pids := []int{c.process.Process.Pid}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[0]))
	if err != nil {
		return pids
	}
	for _, name := range children {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(content)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// cpu is the time that the contender has spent on processors.
func (c *contender) cpu() time.Duration {
	total := time.Duration(0)
	for _, pid := range c.processes() {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			continue
		}
		for _, name := range tasks {
			content, err := os.ReadFile(name)
			if err != nil {
				continue // the thread has ended
			}
			first, _, _ := strings.Cut(string(content), " ")
			if n, err := strconv.ParseInt(first, 10, 64); err == nil {
				total += time.Duration(n)
			}
		}
	}
	return total
}

// resident is the memory that the contender occupies, in bytes.
func (c *contender) resident() int {
	total := 0
	for _, pid := range c.processes() {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
				total += kilobytes << 10
			}
		}
	}
	return total
}
