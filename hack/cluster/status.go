// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// errNotUp gives status an exit code that scripts can use.
var errNotUp = errors.New("the cluster is not up; `make cluster-up` starts or repairs it")

func status(ctx context.Context, s settings) error {
	st, err := loadState(s)
	if err != nil {
		return err
	}
	if len(st.Processes) == 0 {
		return errNotUp
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	allUp := true
	row := func(name string, err error) {
		condition := "ok"
		if err != nil {
			condition, allUp = err.Error(), false
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", name, st.Processes[name].PID, condition)
	}
	fmt.Fprintln(w, "NAME\tPID\tSTATUS")
	for _, d := range []daemon{etcd(s), apiserver(s), controllerManager(s), scheduler(s), metricsServer(s)} {
		row(d.name, processStatus(st, d.name))
	}
	api, apiErr := newAPI(s)
	for _, n := range nodes {
		err := errors.Join(processStatus(st, n.Name()), apiErr)
		if err == nil {
			err = errors.Join(kubeletHealthy(ctx, n), api.nodeReady(ctx, n.Name(), time.Time{}))
		}
		row(n.Name(), err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !allUp {
		return errNotUp
	}
	fmt.Printf("export KUBECONFIG=%s\n", s.adminKubeconfig())
	return nil
}

func processStatus(st *state, name string) error {
	if !st.running(name) {
		return errors.New("not running")
	}
	return nil
}
