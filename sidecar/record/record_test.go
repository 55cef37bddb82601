// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/sidecar/admission"
)

var key = admission.KeyHash{0x29, 15: 0xff}

func TestWhatIsWrittenIsRead(t *testing.T) {
	folder := t.TempDir()
	w, err := Create(folder, "shop/checkout-1", "ABC")
	if err != nil {
		t.Fatal(err)
	}
	w.Share(5, "uid/per-key/1", 42)
	w.Decision(10, "uid/per-key/1", key, 1, true)
	w.Decision(20, "a limit with 100% of\nthe rest", admission.KeyHash{}, 3, false)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "shop_checkout-1-ABC"+Extension))
	if err != nil {
		t.Fatal(err)
	}
	const golden = `headgate-record v1 shop/checkout-1 ABC
S 5 uid/per-key/1 42
v1 10 uid/per-key/1 290000000000000000000000000000ff 1 A
v1 20 a%20limit%20with%20100%25%20of%0Athe%20rest 00000000000000000000000000000000 3 D
`
	if diff := cmp.Diff(golden, string(raw)); diff != "" {
		t.Error(diff)
	}
	got, err := Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Pod: "shop/checkout-1", Incarnation: "ABC",
		Decisions: []Decision{
			{Time: 10, Limit: "uid/per-key/1", Key: key, Cost: 1, Admitted: true},
			{Time: 20, Limit: "a limit with 100% of\nthe rest", Cost: 3},
		},
		Shares: []Share{{Time: 5, Limit: "uid/per-key/1", Units: 42}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Create(folder, "shop/checkout-1", "ABC"); err == nil {
		t.Error("a second process writes into the file of the first")
	}
}

func TestManyWritersDoNotMixTheirLines(t *testing.T) {
	folder := t.TempDir()
	w, err := Create(folder, "p", "i")
	if err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for i := range 8 {
		writing.Go(func() {
			for n := range 200 {
				w.Decision(int64(n), fmt.Sprint("limit", i), key, 1, n%2 == 0)
			}
		})
	}
	writing.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Decision(1, "late", key, 1, true)
	if w.Lost() != 1 {
		t.Errorf("%d records lost, want the one after Close", w.Lost())
	}
	f, err := os.Open(filepath.Join(folder, "p-i"+Extension))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, err := Parse(f)
	if err != nil || len(got.Decisions) != 1600 || got.Torn {
		t.Errorf("read %d decisions, torn = %v, %v", len(got.Decisions), got.Torn, err)
	}
}

func TestParse(t *testing.T) {
	const head = "headgate-record v1 p i\n"
	for name, tc := range map[string]struct {
		in   string
		torn bool
		ok   bool
	}{
		"a header alone is a record":       {head, false, true},
		"a torn last line is left out":     {head + "v1 10 l 2900", true, true},
		"nothing is no record":             {"", false, false},
		"a torn header is no record":       {"headgate-rec", false, false},
		"another file is no record":        {"#!/bin/sh\n", false, false},
		"a later version is no record":     {"headgate-record v2 p i\n", false, false},
		"an unknown line is an error":      {head + "X 1 2 3\n", false, false},
		"an unknown verdict is an error":   {head + "v1 10 l 29000000000000000000000000000000 1 M\n", false, false},
		"a short key is an error":          {head + "v1 10 l 2900 1 A\n", false, false},
		"a long key is an error":           {head + "v1 10 l 2900000000000000000000000000000000 1 A\n", false, false},
		"a time that is none is an error":  {head + "v1 x l 29000000000000000000000000000000 1 A\n", false, false},
		"a negative cost is an error":      {head + "v1 10 l 29000000000000000000000000000000 -1 A\n", false, false},
		"an encoding that is cut":          {head + "S 10 l%2 1\n", false, false},
		"an encoding that is none":         {head + "S 10 l%zz 1\n", false, false},
		"an endless line is an error":      {head + strings.Repeat("x", 2*maxLine), false, false},
		"a torn line in the middle is one": {head + "v1 10 l 2900v1 10 l 29000000000000000000000000000000 1 A\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse(strings.NewReader(tc.in))
			if (err == nil) != tc.ok || tc.ok && f.Torn != tc.torn {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func TestTheClockIsTheMachines(t *testing.T) {
	raw, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	var before float64
	if _, err := fmt.Sscan(string(raw), &before); err != nil {
		t.Fatal(err)
	}
	if now := float64(Now()) / 1e9; now < before-0.02 {
		t.Errorf("the clock says %v s, the machine is up for %v s", now, before)
	}
}

// What Parse accepts, the writer would have written.
func FuzzParse(f *testing.F) {
	f.Add("headgate-record v1 p i\nS 5 l 42\nv1 10 l 290000000000000000000000000000ff 1 A\n")
	f.Add("headgate-record v1 % %\nv1 -1 a%20b 00000000000000000000000000000000 0 D\ntorn")
	f.Fuzz(func(t *testing.T, in string) {
		first, err := Parse(strings.NewReader(in))
		if err != nil {
			return
		}
		folder := t.TempDir()
		w, err := Create(folder, "p", "i")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range first.Shares {
			w.Share(s.Time, s.Limit, s.Units)
		}
		for _, d := range first.Decisions {
			w.Decision(d.Time, d.Limit, d.Key, d.Cost, d.Admitted)
		}
		_ = w.Close()
		raw, err := os.ReadFile(filepath.Join(folder, "p-i"+Extension))
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		second.Pod, second.Incarnation, second.Torn = first.Pod, first.Incarnation, first.Torn
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
}
