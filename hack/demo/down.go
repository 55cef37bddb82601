// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/hack/progress"

	"github.com/headgate/headgate/test/testbed"
)

// down removes all that the demo made: with the local cluster, the cluster.
func down(ctx context.Context, p *progress.Progress) error {
	s := &stage{}
	var err error
	if s.repository, err = testbed.Repository(); err != nil {
		return err
	}
	cache, err := testbed.Cache()
	if err != nil {
		return err
	}
	if testbed.Local() {
		// Release, namespaces and pods end with the cluster.
		if err := p.Step("end the cluster, and all that runs in it", func() error { return s.make(ctx, "cluster-down") }); err != nil {
			return err
		}
	} else if err := s.uninstall(ctx, p); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(cache, "demo"))
}

// uninstall leaves somebody else's cluster as it was.
func (s *stage) uninstall(ctx context.Context, p *progress.Progress) (err error) {
	if s.cluster, err = testbed.Connect(); err != nil {
		return err
	}
	if err := p.Step("delete namespace "+namespace, func() error { return deleteNamespace(ctx, s.cluster) }); err != nil {
		return err
	}
	if err := p.Step("helm", func() error { return s.make(ctx, os.Getenv("HELM")) }); err != nil {
		return err
	}
	chart := &testbed.Chart{Cluster: s.cluster, Repository: s.repository}
	return p.Step("uninstall the chart", func() error { return chart.Uninstall(ctx) })
}
