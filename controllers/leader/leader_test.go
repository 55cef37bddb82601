// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/leader"
	"github.com/headgate/headgate/test/apiserver"
)

func TestTheEpochOnlyRises(t *testing.T) {
	c, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "default", Name: "headgate-operator"}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: new(metav1.NowMicro())},
	}
	if err := c.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	replica := func(address string) *leader.Epochs {
		return &leader.Epochs{Reader: c, Writer: c, Lease: key, Address: address}
	}
	t.Run("each leader's epoch is above the one before, whoever they are", func(t *testing.T) {
		for want := uint64(1); want <= 3; want++ {
			if got, _, err := replica("a").Begin(t.Context(), 0); err != nil || got != want {
				t.Fatalf("epoch %d, %v, want %d", got, err, want)
			}
		}
	})
	t.Run("it rises above what a pod has seen", func(t *testing.T) {
		if got, _, err := replica("a").Begin(t.Context(), 40); err != nil || got != 41 {
			t.Fatalf("epoch %d, %v, want 41", got, err)
		}
	})
	t.Run("two that begin at once get two epochs", func(t *testing.T) {
		var wg sync.WaitGroup
		got := make([]uint64, 4)
		for i := range got {
			wg.Go(func() {
				epoch, _, err := replica("a").Begin(t.Context(), 0)
				if err != nil {
					t.Error(err)
				}
				got[i] = epoch
			})
		}
		wg.Wait()
		seen := map[uint64]bool{}
		for _, e := range got {
			if seen[e] {
				t.Errorf("epoch %d was given twice: %v", e, got)
			}
			seen[e] = true
		}
	})
	t.Run("the leader's address is told to the other replicas", func(t *testing.T) {
		if _, _, err := replica("10.0.0.7:9444").Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		l, err := replica("10.0.0.8:9444").Current(t.Context())
		if err != nil || l.Address != "10.0.0.7:9444" || l.Epoch < 42 {
			t.Fatalf("leader %+v, %v", l, err)
		}
	})
	t.Run("a last word is taken in once, by the leader directly after it", func(t *testing.T) {
		a := replica("a")
		epoch, _, err := a.Begin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Leave(t.Context(), epoch, []byte("left")); err != nil {
			t.Fatal(err)
		}
		if l, err := replica("b").Current(t.Context()); err != nil || l.Address != "" || l.Epoch != epoch {
			t.Fatalf("leader %+v, %v: sidecars would dial a replica that has stopped leading", l, err)
		}
		if _, left, err := replica("b").Begin(t.Context(), 0); err != nil || string(left) != "left" {
			t.Fatalf("%q, %v: what was in the pools is lost", left, err)
		}
		if _, left, err := replica("c").Begin(t.Context(), 0); err != nil || left != nil {
			t.Fatalf("%q, %v: what was in the pools is lent twice", left, err)
		}
		if err := a.Leave(t.Context(), epoch, []byte("late")); err == nil {
			t.Fatal("a leader that another has followed left a word")
		}
		if _, left, err := replica("d").Begin(t.Context(), 0); err != nil || left != nil {
			t.Fatalf("%q, %v of a leader that another has followed", left, err)
		}
	})
	t.Run("a released lease has no leader", func(t *testing.T) {
		if err := c.Get(t.Context(), key, lease); err != nil {
			t.Fatal(err)
		}
		lease.Spec.HolderIdentity = new("")
		if err := c.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if l, err := replica("b").Current(t.Context()); err != nil || l.Address != "" {
			t.Fatalf("leader %+v, %v: sidecars would dial a replica that is gone", l, err)
		}
	})
	t.Run("an epoch that is no number is refused with what to do", func(t *testing.T) {
		lease.Annotations[v1alpha1.AnnotationEpoch] = "many"
		if err := c.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if _, _, err := replica("a").Begin(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "delete the lease") {
			t.Fatalf("error %v does not say what to do", err)
		}
	})
}

func TestALeaseIsBelievedOnlyWhileItCannotHavePassedOn(t *testing.T) {
	cfg := apiserver.Start(t)
	now := int64(time.Hour)
	lock, err := leader.NewLock(cfg, "default", "lock", "a", func() int64 { return now })
	if err != nil {
		t.Fatal(err)
	}
	want := func(valid bool, when string) {
		t.Helper()
		if lock.Valid() != valid {
			t.Errorf("%s: valid is %v", when, !valid)
		}
	}
	want(false, "before the lease is held")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 6}
	if err := lock.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	want(true, "held")
	now += int64(leader.RenewDeadline) - 1
	want(true, "just before it must be renewed")
	now++
	want(false, "not renewed in time")
	if err := lock.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	want(true, "renewed")
	record.HolderIdentity = ""
	if err := lock.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	want(false, "released")
	record.HolderIdentity = "a"
	now += int64(time.Second)
	written := func(update string) bool {
		t.Helper()
		_, before, err := lock.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		record.RenewTime = metav1.NewTime(record.RenewTime.Add(time.Second))
		if err := lock.Update(t.Context(), record); err != nil {
			t.Fatalf("%s: %v", update, err)
		}
		_, after, err := lock.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(before) != string(after)
	}
	if !written("taken") {
		t.Error("a lease that was free is not taken")
	}
	now += int64(time.Second) - 1
	if written("too soon") {
		t.Error("a leader writes the lease more than once a second")
	}
	now++
	if !written("due") {
		t.Error("a leader does not renew after a second")
	}
	record.HolderIdentity = ""
	if !written("released") || lock.Valid() {
		t.Error("a leader that has just renewed cannot release")
	}
	if leader.RenewDeadline >= leader.LeaseDuration {
		t.Error("a leader would be sure of a lease that another may have")
	}
}
