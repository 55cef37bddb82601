// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headgate/headgate/api/release"
	"github.com/headgate/headgate/cmd/kubectl-headgate/fleet"
)

func TestWhatAnErrorSaysOfASidecar(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		through bool
		want    fleet.Outcome
	}{
		"it takes the question and does not answer": {fmt.Errorf("Get: %w", context.DeadlineExceeded), true, fleet.Silent},
		"the way to it does not open in time":       {context.DeadlineExceeded, false, fleet.Unreachable},
		"nothing listens":                           {fmt.Errorf("Get: %w", errRefused), true, fleet.Closed},
		"no right to ask":                           {apierrors.NewForbidden(schema.GroupResource{Resource: "pods/portforward"}, "a", errors.New("no")), false, fleet.Forbidden},
		"no right to ask, as a dialer says it":      {errors.New(`unable to upgrade connection: pods "a" is forbidden: User "b" cannot create resource`), false, fleet.Forbidden},
		"the kubelet is cut off":                    {errors.New("error dialing backend: dial tcp 10.0.0.2:10250: i/o timeout"), false, fleet.Unreachable},
	} {
		if got := failed(tc.err, tc.through); got.Outcome != tc.want || got.Error == "" {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

func TestAFrameFitsTheWindow(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(strings.Repeat("line\n", 30), "\n"), "\n")
	whole, part := frame(lines, 0), frame(lines, 10)
	if n := strings.Count(whole, "\r\n"); n != 30 {
		t.Errorf("%d lines in a window of any height, want 30", n)
	}
	if n := strings.Count(part, "\r\n"); n != 9 || !strings.Contains(part, "22 more lines") {
		t.Errorf("%d lines in a window of 10: %q", n, part)
	}
	if strings.Contains(part, "\x1b[2J") {
		t.Error("the screen is cleared before it is drawn: it flickers")
	}
}

func TestTheShellHearsWhatCameOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		code   int
		silent bool
	}{
		"nothing":              {nil, 0, true},
		"an error":             {errors.New("a"), 1, false},
		"something is wrong":   {&Exit{Code: exitWrong}, 1, true},
		"it could not be seen": {fmt.Errorf("doctor: %w", &Exit{exitBlind, http.ErrHandlerTimeout}), 2, false},
	} {
		if code, silent := Status(tc.err); code != tc.code || silent != tc.silent {
			t.Errorf("%s: %d, %v", name, code, silent)
		}
	}
}

func TestEveryCommandTeaches(t *testing.T) {
	_, out, _ := call(t, "", "--help")
	for _, name := range []string{"status", "top", "explain", "doctor", "release", "inject", "eject", "version", "completion"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("--help does not name %s:\n%s", name, out)
		}
		if name == "version" || name == "completion" {
			continue
		}
		if _, help, _ := call(t, "", name, "--help"); !strings.Contains(help, "Examples:") || !strings.Contains(help, "kubectl headgate "+name) || !strings.Contains(help, "--context") {
			t.Errorf("%s --help has no example, or not kubectl's flags:\n%s", name, help)
		}
	}
}

func TestVersionIsPrintedAlone(t *testing.T) {
	release.Linked = "v0.3.0"
	defer func() { release.Linked = "" }()
	if failed, out, errOut := call(t, "", "version"); failed || out != "v0.3.0\n" || errOut != "" {
		t.Errorf("%q, %q", out, errOut)
	}
}
