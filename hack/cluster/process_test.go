// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"
)

func TestStatIsReadAfterTheCommandName(t *testing.T) {
	const line = `4242 (a) R (b) S 1 4242 4242 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 123456 1 2 3`
	got, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if want := (procStat{state: 'S', threads: 9, start: 123456}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBrokenStatIsAnError(t *testing.T) {
	for name, line := range map[string]string{
		"no command name": "1 init S 0",
		"too few fields":  "1 (init) S 0",
		"no start time":   "1 (init) S 1 1 1 0 -1 1 1 2 3 4 5 6 7 8 20 0 9 0 soon",
		"no threads":      "1 (init) S 1 1 1 0 -1 1 1 2 3 4 5 6 7 8 20 0 many 0 1",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseStat([]byte(line)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestAProcessIsAliveOnlyUnderItsWholeIdentity(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !self.alive() {
		t.Error("this process is not alive")
	}
	for name, other := range map[string]process{
		"another start time": {self.PID, self.Start + 1, self.Exe},
		"another binary":     {self.PID, self.Start, self.Exe + "x"},
		"no process at all":  {},
	} {
		if other.alive() {
			t.Errorf("%s: alive", name)
		}
	}
}

func TestKillEndsExactlyTheProcessThatWasRecorded(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		_ = cmd.Wait() // it is killed below
	}()
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}

	successor := p
	successor.Start++ // as if the pid now belonged to somebody else
	if err := successor.kill(); err != nil {
		t.Fatal(err)
	}
	if !p.alive() {
		t.Fatal("a process with another start time was ended")
	}
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("still alive")
	}
	<-collected
}

func TestTheMarkerIsFoundAsAWholeEntryOnly(t *testing.T) {
	const environ = "PATH=/bin\x00HEADGATE_CLUSTER_RUN=/a/run\x00HOME=/"
	for want, found := range map[string]bool{
		"HEADGATE_CLUSTER_RUN=/a/run":  true,
		"HEADGATE_CLUSTER_RUN=/a":      false,
		"HEADGATE_CLUSTER_RUN=/a/run2": false,
	} {
		if got := hasEntry([]byte(environ), want); got != found {
			t.Errorf("%s: got %v, want %v", want, got, found)
		}
	}
}
