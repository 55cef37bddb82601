// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/release"
	"github.com/headgate/headgate/sidecar/redirect"
)

// Main runs the program and returns its exit status: 0 for a clean end, 1 for a failure, 2 for a wrong call.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return command(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
}

func command(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "drain":
			return drainCommand(ctx, args[1:], stdout, stderr)
		case "redirect":
			return redirectCommand(args[1:], getenv, stdout, stderr)
		case "version":
			_, _ = fmt.Fprintln(stdout, release.Version())
			return 0
		case "help", "-h", "-help", "--help":
			_, _ = parseConfig([]string{"--help"}, getenv, stdout)
			return 0
		}
	}
	c, err := parseConfig(args, getenv, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate-sidecar: %v\n", err)
		return 2
	}
	level := slog.LevelInfo
	if c.Debug {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})).With("pod", c.Pod)
	if err := run(ctx, c, logger); err != nil {
		logger.Error("Stopped", "error", err)
		return 1
	}
	return 0
}

// drainCommand is the preStop hook.
func drainCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("headgate-sidecar drain", flag.ContinueOnError)
	f.SetOutput(stderr)
	address := f.String("local-address", localAddress, "loopback `address` of the running sidecar")
	wait := f.Duration("wait", 0, "how long to wait afterwards, for endpoints to forget the pod")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if err := drain(ctx, *address); err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate-sidecar: %v\n", err)
		return 1
	}
	_, _ = fmt.Fprintln(stdout, "draining")
	if *wait > 0 {
		timer := time.NewTimer(*wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return 0
}

// redirectCommand is the init container of mode Redirect.
func redirectCommand(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		_, _ = fmt.Fprintf(stderr, "headgate-sidecar: redirect takes no arguments: it reads $%s, $%s, $%s and $%s\n",
			quotav1.EnvPorts, quotav1.EnvHostIPs, quotav1.EnvPodIPs, quotav1.EnvSource)
		return 2
	}
	ports, err := parsePorts(getenv(quotav1.EnvPorts))
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate-sidecar: %v\n", err)
		return 2
	}
	var pairs []redirect.Pair
	for _, p := range ports {
		pairs = append(pairs, redirect.Pair{Listener: uint16(p.Listener), App: uint16(p.App)})
	}
	network := redirect.Network{HostIPs: getenv(quotav1.EnvHostIPs), PodIPs: getenv(quotav1.EnvPodIPs), Source: getenv(quotav1.EnvSource)}
	if err := redirect.Apply(network, pairs); err != nil {
		_, _ = fmt.Fprintf(stderr, "headgate-sidecar: redirect: %v\n", err)
		return 1
	}
	_, _ = fmt.Fprintf(stdout, "redirected to the sidecar: %s\n", getenv(quotav1.EnvPorts))
	return 0
}

func drain(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+quotav1.PathDrain, nil)
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("drain: no sidecar answers: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("drain: the sidecar answered %s", response.Status)
	}
	return nil
}

func usage(out io.Writer, f *flag.FlagSet) {
	_, _ = fmt.Fprintf(out, `headgate-sidecar enforces a pod's share of its rate limits.

It stands in front of the application's ports, decides every request in memory, and
forwards it to the application on loopback or answers 429. The limits and the pod's
share of them come from the headgate operator over one stream; without the operator
the last ones stay in force.

Usage:
  headgate-sidecar [flags]                 run until SIGTERM
  headgate-sidecar drain [--wait 5s]       tell the running sidecar to drain (preStop hook)
  headgate-sidecar redirect                redirect the app's ports to the sidecar (init container)
  headgate-sidecar version                 print the version

Looking at a running sidecar (from inside the pod):
  http://%[1]s%[2]s    what is in force: policies, shares, balances
  http://%[1]s%[3]s    POST {"method":"GET","path":"/"}: decide, and spend
  :%[4]d%[5]s                     says why the pod is not ready

Flags:
`, localAddress, quotav1.PathState, quotav1.PathCheck, quotav1.PortAdmin, quotav1.PathReady)
	f.PrintDefaults()
}
