// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
)

func TestADoorThatCanWaitIsAnsweredAtOnceWhereWaitingIsOfNoUse(t *testing.T) {
	e := New(Options{})
	apply(t, e, start, snapshot("v1", limit("all", 1, 1)), part("all", 1, 1))
	if d, ok := e.DecideWait(t.Context(), start, request("/")); !ok || !d.Allowed {
		t.Errorf("got %+v, %v with a token at hand", d, ok)
	}
	if d, ok := e.DecideWait(t.Context(), start, request("/")); !ok || d.Allowed || len(d.Denied) != 1 {
		t.Errorf("got %+v, %v without a token", d, ok)
	}
}
