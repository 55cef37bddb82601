// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar_test

import (
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

func TestItStartsFast(t *testing.T) {
	best := time.Hour
	for range 5 {
		began := time.Now()
		p := startPod(t, echo(), podOptions{bare: true})
		for p.status(p.admin, quotav1.PathStarted) != http.StatusOK {
			if time.Since(began) > patience {
				t.Fatal("it does not start")
			}
			time.Sleep(time.Millisecond)
		}
		best = min(best, time.Since(began))
	}
	t.Logf("started within %v", best) // the goal is 100 ms; a busy machine proves nothing
}

func TestWrongCallsSayWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().String()
	for name, tc := range map[string]struct {
		args, env []string
		status    int
		want      string
	}{
		"no operator":                {nil, nil, 2, "set HEADGATE_OPERATOR or --operator to host:port"},
		"an operator without port":   {nil, []string{"HEADGATE_OPERATOR=operator"}, 2, `operator "operator" is not host:port`},
		"ports of another form":      {[]string{"--ports", "14101:8080"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, `"14101:8080" is not listener=application, such as 14101=8080`},
		"a listener twice":           {[]string{"--ports", "1=2,1=3"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, "listener 1 twice"},
		"a loop":                     {[]string{"--ports", "8080=8080"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, "would forward to itself"},
		"a local server for all":     {[]string{"--local-address", ":14191"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, "is not on loopback"},
		"heads of no size":           {[]string{"--max-head", "0"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, "max-head 0 is not between 1024 and 65535"},
		"heads without an end":       {[]string{"--head-timeout", "0s"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, "must be above 0, such as 10s"},
		"an unknown command":         {[]string{"dance"}, []string{"HEADGATE_OPERATOR=a:1"}, 2, `unknown command "dance"`},
		"a port in use":              {[]string{"--admin-address", taken, "--local-address", "127.0.0.1:0"}, []string{"HEADGATE_OPERATOR=a:1"}, 1, "address already in use"},
		"a folder that is not there": {[]string{"--record", "/nowhere", "--admin-address", "127.0.0.1:0", "--local-address", "127.0.0.1:0"}, []string{"HEADGATE_OPERATOR=a:1"}, 1, "creating the record"},
		"nobody to drain":            {[]string{"drain", "--local-address", "127.0.0.1:1"}, nil, 1, "no sidecar answers"},
		"help":                       {[]string{"--help"}, nil, 0, "headgate-sidecar drain"},
		"help in a word":             {[]string{"help"}, nil, 0, "Flags:"},
		"the version":                {[]string{"version"}, nil, 0, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(binary, tc.args...)
			command.Env = append([]string{"PATH="}, tc.env...)
			out, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode(); got != tc.status || !strings.Contains(string(out), tc.want) {
				t.Errorf("exit status %d, want %d; output:\n%s\nwant: %s", got, tc.status, out, tc.want)
			}
		})
	}
}
