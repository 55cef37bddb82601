// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/hack/progress"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/test/testbed"
)

// stage is everything that the scene plays on.
type stage struct {
	cluster    *testbed.Cluster
	repository string
	chart      *testbed.Chart
	app        *testbed.App
	hpa        *autoscalingv2.HorizontalPodAutoscaler
	policy     *v1alpha1.RateLimitPolicy
	address    string // of the app's Service
	records    string // folder; empty = the nodes are not on this machine
}

// prepare brings up the cluster, the operator, the app and the policy.
func prepare(ctx context.Context, p *progress.Progress) (*stage, error) {
	s := &stage{}
	var err error
	if s.repository, err = testbed.Repository(); err != nil {
		return nil, err
	}
	if err := s.start(ctx, p); err != nil {
		return nil, err
	}
	// An earlier run's app ends while images are built.
	cleared := make(chan error, 1)
	go func() { cleared <- deleteNamespace(ctx, s.cluster) }()
	images, err := s.bringImages(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.makeRecords(); err != nil {
		return nil, err
	}
	s.chart = &testbed.Chart{Cluster: s.cluster, Repository: s.repository, Images: images, Records: s.records}
	if err := p.Step("install the chart: the operator, with 2 replicas", func() error { return s.chart.Install(ctx) }); err != nil {
		return nil, err
	}
	if err := p.Step("clear what an earlier demo has left", func() error { return <-cleared }); err != nil {
		return nil, err
	}
	s.app = &testbed.App{Name: appName, Namespace: namespace, Image: images.Name("echo"), Local: s.cluster.Local}
	if err := p.Step("an echo app with 2 replicas and an HPA", func() error { return s.deploy(ctx) }); err != nil {
		return nil, err
	}
	err = p.Step("apply the policy: 200/s in total, 20/s per API key; the app restarts with the sidecar", func() error { return s.limit(ctx) })
	return s, err
}

// start brings up the cluster.
func (s *stage) start(ctx context.Context, p *progress.Progress) (err error) {
	if err := p.Step("cluster", func() error { return s.make(ctx, "cluster-up") }); err != nil {
		return err
	}
	s.cluster, err = testbed.Connect()
	return err
}

// bringImages builds the programs and brings them to the nodes; helm is built by the way.
func (s *stage) bringImages(ctx context.Context, p *progress.Progress) (testbed.Images, error) {
	var images testbed.Images
	err := p.Step("images", func() (err error) {
		images, err = s.cluster.BringImages(ctx, s.repository, &indent{})
		return err
	})
	if err != nil {
		return images, err
	}
	return images, p.Step("helm", func() error { return s.make(ctx, os.Getenv("HELM")) })
}

// makeRecords makes a folder in which every sidecar, under its own user, can write. Nodes of the local cluster see it.
func (s *stage) makeRecords() error {
	if !s.cluster.Local {
		return nil
	}
	cache, err := testbed.Cache()
	if err != nil {
		return err
	}
	all := filepath.Join(cache, "demo")
	if err := os.RemoveAll(all); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	s.records = filepath.Join(all, time.Now().Format("20060102-150405"))
	if err := os.MkdirAll(s.records, 0o755); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	return os.Chmod(s.records, 0o777)
}

// stopRecording leaves an installation as any other: only the demo's pods record what they decide, and a namespace with the
// restricted level, which forbids folders of the node, can be tried next.
func (s *stage) stopRecording(ctx context.Context, p *progress.Progress) error {
	if s.records == "" {
		return nil
	}
	fmt.Println()
	s.chart.Records, s.chart.NoWait = "", true
	return p.Step("leave the operator as a plain installation: decisions are not recorded any more", func() error { return s.chart.Install(ctx) })
}

func deleteNamespace(ctx context.Context, c *testbed.Cluster) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Delete(ctx, ns); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil && !apierrors.IsConflict(err) {
		return err
	}
	return testbed.Wait(ctx, 2*time.Minute, "namespace "+namespace+" to be gone", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// deploy makes the app and waits for it.
func (s *stage) deploy(ctx context.Context) error {
	s.hpa = s.app.Autoscaler(2, 2, 80)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, s.app.Service(), s.app.Deployment(2), s.hpa,
	} {
		if err := s.cluster.Create(ctx, o); err != nil {
			return err
		}
	}
	if _, err := s.cluster.WaitReady(ctx, time.Minute, s.app, 2); err != nil {
		return err
	}
	var err error
	s.address, err = s.cluster.Address(ctx, s.app)
	return err
}

// limit applies the sample policy in the demo's namespace.
func (s *stage) limit(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join(s.repository, sample))
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	s.policy = &v1alpha1.RateLimitPolicy{}
	if err := yaml.UnmarshalStrict(raw, s.policy); err != nil {
		return fmt.Errorf("policy %s: %w", sample, err)
	}
	s.policy.Namespace = namespace
	// The webhook may refuse for some moments while a new operator starts.
	err = testbed.Wait(ctx, 20*time.Second, "the policy to be accepted", func(ctx context.Context) error {
		return s.cluster.Create(ctx, s.policy)
	})
	if err != nil {
		return err
	}
	if s.policy, err = s.cluster.WaitEnforced(ctx, time.Minute, client.ObjectKeyFromObject(s.policy), 2); err != nil {
		return err
	}
	// The pods of before the policy had no preStop hook: while they go, requests to them may fail, policy or not.
	if err := s.settled(ctx, 2); err != nil {
		return err
	}
	if err := s.cluster.WaitReachable(ctx, 10*time.Second, s.address); err != nil {
		return fmt.Errorf("%w; the load is sent from here to the cluster's own addresses: with CLUSTER=current run the demo on one of its nodes, or leave CLUSTER out to use the local cluster", err)
	}
	return nil
}
