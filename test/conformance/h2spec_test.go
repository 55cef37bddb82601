// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

func TestH2Spec(t *testing.T) {
	app := application(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "hello from the application")
	}))
	address := gate(t, app)
	c := &config.Config{Host: "127.0.0.1", Port: address.Port, Path: "/", Timeout: 2 * time.Second, MaxHeaderLen: 4000, Strict: true}
	passed := 0
	for _, suite := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		suite.Test(c)
		passed += suite.PassedCount
		report(t, suite)
	}
	if passed < 140 {
		t.Errorf("only %d cases have passed: has the suite run?", passed)
	}
	t.Logf("%d cases passed", passed)
}

// report fails the test for every case that failed or did not run.
func report(t *testing.T, g *spec.TestGroup) {
	t.Helper()
	for _, c := range g.Tests {
		if c.Result != nil && c.Result.Failed {
			t.Errorf("%s: %s: %v", g.Title(), c.Desc, c.Result.Error)
		}
		if c.Result != nil && c.Result.Skipped {
			t.Errorf("%s: %s was skipped", g.Title(), c.Desc)
		}
	}
	for _, sub := range g.Groups {
		report(t, sub)
	}
}
