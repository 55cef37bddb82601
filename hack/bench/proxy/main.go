// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command proxy measures the sidecar beside other proxies that do the same work, on one machine, and writes the figures as
// JSON and as a page of documentation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 4 {
		// The parts of the measurement that are programs of their own.
		if f := programs[os.Args[1]]; f != nil {
			fail(f(os.Args[2], os.Args[3]))
			return
		}
	}
	var o options
	flag.StringVar(&o.json, "json", "", "file for the figures")
	flag.StringVar(&o.page, "page", "", "file for the page of documentation")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; medians count")
	flag.DurationVar(&o.length, "length", 2*time.Second, "length of one measurement")
	only := flag.String("only", "", "cases whose name holds this")
	contenders := flag.String("contenders", "", "names of contenders, all when empty")
	flag.Parse()
	o.only = *only
	if *contenders != "" {
		o.contenders = strings.Split(*contenders, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fail(run(ctx, o))
}

type options struct {
	json, page string
	rounds     int
	length     time.Duration
	only       string
	contenders []string
}

// programs are run with two addresses: where to listen, and where the application is.
var programs = map[string]func(listen, app string) error{
	"application":  application,
	"reverseproxy": reverseProxy,
	"gnet":         gnetRelay,
}

func fail(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := install(); err != nil {
		return err
	}
	s, err := setUp()
	if err != nil {
		return err
	}
	defer s.tearDown()
	r := report{Machine: describe(), Rounds: o.rounds, Length: o.length.String()}
	for _, c := range cases() {
		if !strings.Contains(c.name, o.only) {
			continue
		}
		measured, err := s.contest(ctx, c, o)
		if err != nil {
			return err
		}
		r.add(c, measured)
	}
	if o.only == "" || strings.Contains(memoryCase, o.only) {
		measured, err := s.memory(ctx, o)
		if err != nil {
			return err
		}
		r.addMemory(measured)
	}
	return r.write(o.json, o.page)
}
