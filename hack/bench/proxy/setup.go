// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"slices"
)

// setup is all that runs during the measurement.
type setup struct {
	self       string // this program
	folder     string
	test       *tb
	app        *contender
	contenders []*contender
	taken      map[string]bool
}

func setUp() (s *setup, err error) {
	s = &setup{taken: map[string]bool{}}
	if s.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "headgate-bench"); err != nil {
		return nil, err
	}
	// nginx gives up root for its worker, which has to write here.
	if err := os.Chmod(s.folder, 0o777); err != nil {
		return nil, err
	}
	s.test = &tb{folder: s.folder}
	s.app = &contender{name: direct, http: s.address(), rpc: s.address()}
	if err := s.run(s.app, nil, s.self, "application", s.app.http, s.app.rpc); err != nil {
		s.tearDown()
		return nil, err
	}
	for _, start := range []func() error{s.startSidecar, s.startNginx, s.startHAProxy, s.startGoProxy, s.startCaddy, s.startGnet} {
		if err := start(); err != nil {
			s.tearDown()
			return nil, err
		}
	}
	return s, nil
}

func (s *setup) run(c *contender, env []string, name string, args ...string) error {
	s.contenders = append(s.contenders, c)
	return c.start(env, name, args...)
}

// address is a free one on loopback.
func (s *setup) address() string {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if !s.taken[address] {
			s.taken[address] = true
			return address
		}
	}
}

func (s *setup) tearDown() {
	for _, c := range slices.Backward(s.contenders) {
		c.stop()
	}
	for _, f := range slices.Backward(s.test.cleanups) {
		f()
	}
	if err := os.RemoveAll(s.folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		fail(err)
	}
}
