//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/test/load"
	"github.com/headgate/headgate/test/testbed"
)

// waitFor polls, within bounds.
func waitFor(s *space, timeout time.Duration, what string, check func(context.Context) error) {
	s.Helper()
	if err := testbed.Wait(s.ctx, timeout, what, check); err != nil {
		s.Fatal(err)
	}
}

func noRequestIsLostInRollouts(t *testing.T) {
	s := newSpace(t)
	app := s.app("app")
	s.must(suite.Create(s.ctx, app.Deployment(3)), "deployment")
	policy := s.policy("all", app.Name, perSecond("all", 60, 60))
	s.apply(policy)
	s.ready(app, 3)
	s.enforced(policy, 3)
	s.settled(app, 3)

	run := s.load(app,
		load.Client{Rate: 30, Connections: load.Pinned}, load.Client{Rate: 30, Connections: load.Pinned},
		load.Client{Rate: 30, Connections: load.Renewed}, load.Client{Rate: 30, Connections: load.New})
	s.until(run, 100)
	s.restart(app)
	s.settled(app, 3)
	s.enforced(policy, 3)

	victim := s.settled(app, 3)[0]
	s.must(suite.SubResource("eviction").Create(s.ctx, &victim, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim.Namespace, Name: victim.Name}}), "eviction")
	waitFor(s, soon, "the eviction", func(ctx context.Context) error {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(&victim), &victim); err != nil {
			return client.IgnoreNotFound(err)
		}
		if victim.DeletionTimestamp == nil {
			return errors.New("the pod stays")
		}
		return nil
	})
	s.settled(app, 3)
	s.enforced(policy, 3)
	s.until(run, 100)
	s.none(run.Stop())

	// A workload that rests for a while finds its limit as it was.
	s.scale(app, 0)
	s.settled(app, 0)
	s.enforced(policy, 0)
	s.scale(app, 2)
	s.settled(app, 2)
	s.enforced(policy, 2)
	back := s.load(app, load.Client{Rate: 60, Connections: load.New}, load.Client{Rate: 60, Connections: load.Renewed})
	s.until(back, 400)
	s.none(back.Stop())
	if c := back.Count(); c.Admitted == 0 || c.Denied == 0 {
		s.Errorf("after the rest: %+v", c)
	}
	s.judge(run, back)
}

// restart is what kubectl rollout restart does; it waits until the controller has seen it.
func (s *space) restart(app *testbed.App) {
	s.Helper()
	s.change(app, func(d *appsv1.Deployment) {
		if d.Spec.Template.Annotations == nil {
			d.Spec.Template.Annotations = map[string]string{}
		}
		d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = time.Now().Format(time.RFC3339Nano)
	})
	waitFor(s, rollout, "the rollout", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := suite.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: app.Name}, &d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return errors.New("it goes on")
		}
		return nil
	})
}

func (s *space) scale(app *testbed.App, n int32) {
	s.Helper()
	s.change(app, func(d *appsv1.Deployment) { d.Spec.Replicas = &n })
}

// change patches the app's Deployment.
func (s *space) change(app *testbed.App, edit func(*appsv1.Deployment)) {
	s.Helper()
	var d appsv1.Deployment
	s.must(suite.Get(s.ctx, client.ObjectKey{Namespace: app.Namespace, Name: app.Name}, &d), "deployment")
	before := d.DeepCopy()
	edit(&d)
	s.must(suite.Patch(s.ctx, &d, client.MergeFrom(before)), "deployment")
}
