// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command limiter measures package limiter and its peers side by side, in one process, and writes the figures as JSON
// and as a page of documentation.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	out := flag.String("json", "", "file for the figures")
	page := flag.String("page", "", "file for the page of documentation")
	rounds := flag.Int("rounds", 5, "rounds; the best of each contender counts")
	length := flag.Duration("length", 200*time.Millisecond, "length of one measurement")
	keys := flag.Int("keys", 1_000_000, "number of keys")
	flag.Parse()
	if err := run(*out, *page, *rounds, *length, *keys); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out, page string, rounds int, length time.Duration, keys int) error {
	m := measurer{rounds: rounds, length: length}
	r := report{Machine: describe()}
	for _, c := range singleKey() {
		r.add(c, m.contest(c))
	}
	for _, c := range floors() {
		r.add(c, m.contest(c))
	}
	runtime.GC()
	stores, err := buildStores(keys)
	if err != nil {
		return err
	}
	r.add(memoryContest, stores.bytesPerKey(keys))
	for _, c := range stores.contests(keys) {
		r.add(c, m.contest(c))
	}
	return r.write(out, page)
}
