// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/headgate/headgate/hack/progress"
)

// up starts the cluster or repairs it: every step does only what is not done yet.
func up(ctx context.Context, s settings) error {
	if err := checkSystem(); err != nil {
		return err
	}
	unlock, err := lockCluster(s)
	if err != nil {
		return err
	}
	defer unlock()
	p := progress.New(os.Stderr)
	st, err := loadState(s)
	if err != nil {
		return err
	}
	fresh := len(st.Processes) == 0
	err = bringUp(ctx, s, st, p)
	if err != nil && ctx.Err() != nil && fresh {
		p.Say("interrupted: removing what was started")
		return errors.Join(errors.New("interrupted"), tearDown(s))
	}
	if err != nil && len(st.Processes) > 0 {
		return fmt.Errorf("%w\nlogs are in %s; `up` goes on from here, `down` removes everything", err, s.run+"/logs")
	}
	if err != nil {
		return err
	}
	p.Say("cluster is up: %d nodes", len(nodes))
	fmt.Printf("export KUBECONFIG=%s\n", s.adminKubeconfig())
	return nil
}

func bringUp(ctx context.Context, s settings, st *state, p *progress.Progress) error {
	if missing := missingPackages(); len(missing) > 0 {
		if err := p.Step(fmt.Sprintf("install packages %v", missing), func() error { return installPackages(ctx, missing) }); err != nil {
			return err
		}
	}
	// Before the build: ten minutes are long to wait for the news that a port is taken.
	if err := p.Step("check the machine", func() error { return prepare(s, st) }); err != nil {
		return err
	}
	if err := buildAll(ctx, s, p, targets); err != nil {
		return err
	}
	type step struct {
		name string
		run  func() error
	}
	steps := []step{
		{"images, certificates, bridge", func() error { return furnish(s) }},
		{"control plane", func() error { return ensureControlPlane(ctx, s, st) }},
	}
	for _, n := range nodes {
		steps = append(steps, step{n.Name(), func() error { return ensureNode(ctx, s, st, n) }})
	}
	steps = append(steps,
		step{"metrics-server", func() error { return ensureAddons(ctx, s, st) }},
		step{"CoreDNS", func() error { return waitForDNS(ctx, s) }},
		step{"kernel settings as before", func() error { return verifySysctls(st, p) }},
	)
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.Step(step.name, step.run); err != nil {
			return err
		}
	}
	return nil
}

// prepare ends what a killed `up` left without a record, and records the machine
// as it is before anything changes.
func prepare(s settings, st *state) error {
	if err := endStrays(s, st); err != nil {
		return err
	}
	if err := checkMachine(st); err != nil {
		return err
	}
	if err := os.MkdirAll(s.run, 0o755); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := checkSpace(s.run, wantSpace); err != nil {
		return err
	}
	return st.recordSysctls()
}

func furnish(s settings) error {
	for _, f := range []func(settings) error{writeImages, createPKI, copyProgram} {
		if err := f(s); err != nil {
			return err
		}
	}
	return createBridge()
}

func verifySysctls(st *state, p *progress.Progress) error {
	changed, err := st.restoreSysctls()
	if len(changed) > 0 {
		p.Say("put back: %v", changed)
	}
	return err
}
