// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
)

func TestARequestIsReadAsPeopleWriteIt(t *testing.T) {
	for line, want := range map[string]admin.CheckRequest{
		"/":                       {Method: "GET", Path: "/", Headers: map[string][]string{}},
		"get /v1/x?a=b":           {Method: "GET", Path: "/v1/x?a=b", Headers: map[string][]string{}},
		" POST  /login HTTP/1.1 ": {Method: "POST", Path: "/login", Headers: map[string][]string{}},
	} {
		got, err := readRequest(line, nil, "")
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
	got, err := readRequest("GET /", []string{"X-Key: a", "x-key:b", "Host: shop.example"}, "10.0.0.1")
	if err != nil || got.Host != "shop.example" || got.Peer != "10.0.0.1" || len(got.Headers["X-Key"]) != 1 || got.Headers["x-key"][0] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatCannotBeReadIsRefusedWithAnExample(t *testing.T) {
	for name, tc := range map[string]struct {
		line, header, want string
	}{
		"nothing":                 {"", "X: a", "'GET /v1/orders'"},
		"a URL":                   {"GET http://shop.example/", "X: a", "'GET /v1/orders'"},
		"too many words":          {"GET /a /b", "X: a", "'GET /v1/orders'"},
		"a header without a name": {"GET /", ": a", "'X-API-Key: a'"},
		"a header of one word":    {"GET /", "X-API-Key", "'X-API-Key: a'"},
	} {
		if _, err := readRequest(tc.line, []string{tc.header}, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an example", name, err)
		}
	}
}

func TestTheTableSaysWhatEachLimitWouldDo(t *testing.T) {
	x := &admission.Explanation{Verdict: "denied", RetryAfterSeconds: 1.234, Limits: []admission.LimitExplanation{
		{Policy: "checkout", Limit: "per-key", Variant: "gold", Counts: true, Key: []string{"a", "10.0.0.0"}, Cost: 2, Remaining: 1.5, Most: 20, Would: admission.WouldDeny, Why: "too few tokens are left in this pod"},
		{Policy: "other", Limit: "all", Why: "no entry of match holds"},
		{Policy: "other", Limit: "new", Counts: true, Cost: 1, Remaining: 3, Most: 3, Would: admission.WouldAdmit, Shadow: true},
	}}
	var out bytes.Buffer
	if err := printExplanation(&out, "", "pod-1", "checkout", x); err != nil {
		t.Fatal(err)
	}
	want := `LIMIT                       COUNTS   KEY           COST   LEFT        WOULD            WHY
* checkout/per-key (gold)   yes      a, 10.0.0.0   2      1.5 of 20   deny             too few tokens are left in this pod
  other/all                 no       -             -      -           -                no entry of match holds
  other/new                 yes      -             1      3 of 3      admit (shadow)   

The request would be denied by pod pod-1 now; admitted in 1.23 s if nobody else asks.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := printExplanation(&out, "xml", "p", "c", x); err == nil || !strings.Contains(err.Error(), "json or yaml") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestAWrongCallSaysWhatIsMissing(t *testing.T) {
	for want, args := range map[string][]string{
		`required flag(s) "request" not set`: {"explain", "checkout"},
		"accepts 1 arg(s)":                   {"explain", "--request", "GET /"},
	} {
		var out bytes.Buffer
		c := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
		c.SetArgs(args)
		if err := c.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
