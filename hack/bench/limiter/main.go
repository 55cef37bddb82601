// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command limiter measures package limiter and its peers side by side, in one process, and writes the figures as JSON
// and as a page of documentation.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

func main() {
	out := flag.String("json", "", "file for the figures")
	page := flag.String("page", "", "file for the page of documentation")
	passes := flag.Int("passes", 3, "passes over all cases")
	rounds := flag.Int("rounds", 8, "rounds in each pass, half as many for cases that need much memory; the best of each contender counts")
	length := flag.Duration("length", 40*time.Millisecond, "length of one measurement, five times that for cases that need much memory")
	keys := flag.Int("keys", 1_000_000, "number of keys")
	flag.Parse()
	if err := run(*out, *page, measurer{*passes, *rounds, *length}, *keys); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out, page string, m measurer, keys int) error {
	r := report{Machine: describe()}
	stores, err := buildStores(keys)
	if err != nil {
		return err
	}
	r.add(memoryContest, stores.bytesPerKey(keys))
	cases := slices.Concat(singleKey(), floors(), stores.contests(keys))
	for i, figures := range m.contests(cases) {
		r.add(cases[i], figures)
	}
	return r.write(out, page)
}
