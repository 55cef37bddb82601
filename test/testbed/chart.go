// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Release of the chart, and its namespace.
const (
	Release   = "headgate"
	Namespace = "headgate-system"
	// Operator names the operator's objects.
	Operator = "headgate-operator"
)

// Chart installs the operator as a user would: by helm.
type Chart struct {
	Cluster    *Cluster
	Repository string
	Images     Images
	// Archive is the packaged chart to install instead of the repository's own.
	Archive string
	// Set has more values, as helm's --set takes them.
	Set []string
	// Records is the folder of the nodes in which every sidecar records what it decides; empty = none.
	Records string
	// NoWait leaves the replicas to become ready by themselves.
	NoWait  bool
	Timeout time.Duration
}

// Install installs or upgrades the chart, with two replicas, and waits until they are ready and those of before have gone,
// unless told not to: a replica that ends still injects what it was told to.
func (c *Chart) Install(ctx context.Context) error {
	pull := "IfNotPresent"
	if c.Cluster.Local {
		pull = "Never" // images are imported, and no registry is asked
	}
	chart := cmp.Or(c.Archive, filepath.Join(c.Repository, "charts", "headgate"))
	args := []string{"upgrade", "--install", Release, chart, "--create-namespace",
		"--set", "replicas=2",
		"--set", "image.repository=" + c.Images.Registry + "/operator,image.tag=" + c.Images.Tag + ",image.pullPolicy=" + pull,
		"--set", "sidecar.image.repository=" + c.Images.Registry + "/sidecar,sidecar.image.tag=" + c.Images.Tag + ",sidecar.image.pullPolicy=" + pull,
		"--set", "rollout.patience=15s", // a minute is long for a test
		"--set", "test.decisionRecords=" + c.Records}
	for _, set := range c.Set {
		args = append(args, "--set", set)
	}
	if !c.NoWait {
		args = append(args, "--wait", "--timeout", c.timeout().String())
	}
	if err := c.helm(ctx, args...); err != nil || c.NoWait {
		return err
	}
	return Wait(ctx, c.timeout(), "earlier replicas of the operator to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.Cluster.List(ctx, &pods, client.InNamespace(Namespace), client.MatchingLabels{"app.kubernetes.io/component": "operator"}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				return fmt.Errorf("%s is still there", pods.Items[i].Name)
			}
		}
		return nil
	})
}

// Test runs the chart's own tests.
func (c *Chart) Test(ctx context.Context) error {
	return c.helm(ctx, "test", Release, "--timeout", c.timeout().String())
}

// Uninstall removes the release; nothing is done when there is none.
func (c *Chart) Uninstall(ctx context.Context) error {
	return c.helm(ctx, "uninstall", Release, "--ignore-not-found", "--wait", "--timeout", c.timeout().String())
}

func (c *Chart) timeout() time.Duration {
	if c.Timeout == 0 {
		return 2 * time.Minute
	}
	return c.Timeout
}

func (c *Chart) helm(ctx context.Context, args ...string) error {
	helm := os.Getenv("HELM")
	if helm == "" {
		return errors.New("helm: HELM is not set; use the Makefile's targets")
	}
	args = append(args, "--namespace", Namespace)
	if c.Cluster.Kubeconfig != "" {
		args = append(args, "--kubeconfig", c.Cluster.Kubeconfig)
	}
	cmd := exec.CommandContext(ctx, helm, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(string(out)))
	}
	return nil
}
