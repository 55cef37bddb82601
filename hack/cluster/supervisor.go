// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// supervisor starts the processes of a node and, being pid 1, collects every
// process of the node that ends: containerd's shims are orphans by design.
//
// os/exec is not used: it waits for its own children, which pid 1 already does.
type supervisor struct {
	settings settings
	node     node

	mu      sync.Mutex // also held during a fork: no child ends unknown
	waiting map[int]chan syscall.WaitStatus
}

func newSupervisor(s settings, n node) *supervisor {
	sup := &supervisor{settings: s, node: n, waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			sup.collect()
		}
	}()
	return sup
}

// collect takes all that ended so far: one SIGCHLD may stand for several.
func (sup *supervisor) collect() {
	sup.mu.Lock()
	defer sup.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ch, ok := sup.waiting[pid]; ok {
			delete(sup.waiting, pid)
			ch <- status
		}
	}
}

// fork starts a binary; its status comes over the channel when it ends.
func (sup *supervisor) fork(name string, args []string) (<-chan syscall.WaitStatus, error) {
	logFile, err := openLog(sup.settings.log(sup.node.Name() + "-" + name))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	path := sup.settings.binary(name)
	ch := make(chan syscall.WaitStatus, 1)

	sup.mu.Lock()
	defer sup.mu.Unlock()
	pid, err := syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   sup.settings.environment(),
		Files: []uintptr{0, logFile.Fd(), logFile.Fd()},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	sup.waiting[pid] = ch
	return ch, nil
}

// run waits for a command's end.
func (sup *supervisor) run(name string, args ...string) error {
	ch, err := sup.fork(name, args)
	if err != nil {
		return err
	}
	if status := <-ch; !status.Exited() || status.ExitStatus() != 0 {
		return fmt.Errorf("%s: %s; see %s", name, describe(status), sup.settings.log(sup.node.Name()+"-"+name))
	}
	return nil
}

// restartDelay keeps a process that cannot start from taking a whole processor.
const restartDelay = time.Second

// keep runs a process and starts it again whenever it ends, as an init system would.
func (sup *supervisor) keep(name string, args ...string) {
	go func() {
		for {
			ch, err := sup.fork(name, args)
			if err != nil {
				log.Print(err)
			} else {
				log.Printf("%s: %s; starting it again", name, describe(<-ch))
			}
			time.Sleep(restartDelay)
		}
	}()
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "ended by signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
