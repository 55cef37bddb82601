// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"google.golang.org/protobuf/proto"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Whatever the operator sends, Apply either puts it in force as a whole or leaves what was.
func FuzzApply(f *testing.F) {
	for _, a := range []*quotav1.Assignment{
		{},
		{Snapshot: snapshot("v1", limit("all", 10, 10)), Shares: []*quotav1.Share{part("all", 2, 1)}},
		{Snapshot: snapshot("v1", keyed(limit("all", 10, 10, prefix("/v1"), exact("/x"), headers("x-a", "1")), byHeader("x-key"), byClient(0, 0)))},
	} {
		b, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "/v1/x", "gold")
	}
	f.Fuzz(func(t *testing.T, message []byte, path, key string) {
		a := &quotav1.Assignment{}
		if proto.Unmarshal(message, a) != nil {
			return
		}
		e := New(Options{Keys: 16})
		apply(t, e, start, snapshot("good", limit("all", 10, 10)), part("all", 1, 1))
		err := e.Apply(a.GetSnapshot(), a.GetShares(), start)
		if err != nil && e.SnapshotVersion() != "good" {
			t.Fatalf("refused (%v), but %q is in force", err, e.SnapshotVersion())
		}
		if err == nil && e.SnapshotVersion() != a.GetSnapshot().GetVersion() {
			t.Fatalf("applied, but %q is in force", e.SnapshotVersion())
		}
		r := request(path, "X-Key", key, "X-A", key)
		r.Method = key
		for range 3 {
			d := e.Decide(r, start)
			if d.Allowed == (len(d.Denied) > 0) {
				t.Fatalf("allowed = %v, denied by %v", d.Allowed, d.Names())
			}
		}
		for _, h := range e.Holdings() {
			if h.GetUnits() > quotav1.Whole {
				t.Fatalf("holds %d of %d", h.GetUnits(), quotav1.Whole)
			}
		}
		_ = e.State(start)
	})
}
