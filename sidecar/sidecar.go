// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
	"github.com/headgate/headgate/api/release"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/sidecar/admin"
	"github.com/headgate/headgate/sidecar/admission"
	"github.com/headgate/headgate/sidecar/door"
	"github.com/headgate/headgate/sidecar/footprint"
	"github.com/headgate/headgate/sidecar/probe"
	"github.com/headgate/headgate/sidecar/proxy"
	"github.com/headgate/headgate/sidecar/quota"
	"github.com/headgate/headgate/sidecar/record"
)

// sidecar is one running program.
type sidecar struct {
	// Immutable after assemble.
	config  *Config
	log     *slog.Logger
	clock   func() limiter.Time
	writer  *record.Writer // nil without records
	engine  *admission.Engine
	quota   *quota.Client
	admin   *admin.Admin
	proxies []*proxy.Proxy
	public  *http.Server
	local   *http.Server

	listeners []net.Listener // all of them, to be closed when the start fails
	draining  atomic.Bool
	drainOnce sync.Once
}

// farewell is how long the operator may take to read the final report. Without it the pod's share stays reserved until
// the kubelet reports the container's end.
const farewell = 2 * time.Second

// settling is when the start is over, with what only it needs.
const settling = time.Second

// run carries the program from start to end: until the context is done, and then in order until nothing is in flight.
func run(ctx context.Context, c *Config, log *slog.Logger) error {
	s, err := assemble(c, log)
	if err != nil {
		return err
	}
	failed := make(chan error, len(s.proxies)+2)
	var serving sync.WaitGroup
	serve := func(f func() error) {
		serving.Go(func() {
			if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	serve(func() error { return s.public.Serve(s.listeners[0]) })
	serve(func() error { return s.local.Serve(s.listeners[1]) })
	for _, p := range s.proxies {
		serve(p.Serve)
	}
	streaming, hangUp := context.WithCancel(context.Background())
	serving.Go(func() { s.quota.Run(streaming) })
	serving.Go(func() { s.turn(streaming) })
	settled := time.AfterFunc(settling, func() {
		debug.FreeOSMemory() // what the start has left on the heap
		if err := footprint.Trim(); err != nil {
			log.Debug("The program stays in memory", "error", err)
		}
	})
	defer settled.Stop()
	log.Info("Started", "version", release.Version(), "ports", len(c.Ports), "operator", c.Operator)

	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.end()
	hangUp()
	serving.Wait()
	if s.writer != nil {
		if lost := s.writer.Lost(); lost > 0 {
			log.Error("Records were lost", "count", lost)
		}
		err = errors.Join(err, s.writer.Close())
	}
	return err
}

// assemble makes all parts and opens all ports. It starts nothing.
func assemble(c *Config, log *slog.Logger) (*sidecar, error) {
	s := &sidecar{config: c, log: log, clock: limiter.Now}
	incarnation := rand.Text()
	options := admission.Options{Keys: c.Keys}
	if c.Record != "" {
		writer, err := record.Create(c.Record, c.Pod, incarnation)
		if err != nil {
			return nil, err
		}
		s.writer = writer
		options.Recorder = s.writer
		// Records of all pods of a machine are compared, so their clock decides too.
		s.clock = func() limiter.Time { return limiter.Time(record.Now()) }
	}
	s.engine = admission.New(options)
	s.quota = quota.New(quota.Options{
		Operator:    c.Operator,
		Credentials: quota.Credentials{TokenFile: c.TokenFile, CAFile: c.CAFile},
		Identity:    quota.Identity{Incarnation: incarnation, StartedAt: time.Now(), Version: release.Version()},
		Enforcer:    enforcer{s.engine, s.clock, s.drain},
		Log:         log,
	})
	s.admin = admin.New(admin.Options{
		Pod:         c.Pod,
		Version:     release.Version(),
		Incarnation: incarnation,
		Engine:      s.engine,
		Clock:       s.clock,
		Quota:       s.quota.Status,
		Draining:    s.draining.Load,
		Drain:       s.drain,
		Asked:       s.asked,
		Probes:      probe.New(c.Probes),
	})
	s.public = admin.Server(s.admin.Public())
	s.local = admin.Server(door.Handler(&door.RateLimit{Engine: s.engine, Clock: s.clock}, s.admin.Local()))
	if err := s.listen(); err != nil {
		for _, l := range s.listeners {
			_ = l.Close()
		}
		return nil, err
	}
	return s, nil
}

// listen opens all ports: first the two of admin, then the proxies'.
func (s *sidecar) listen() error {
	addresses := []string{s.config.AdminAddress, s.config.LocalAddress}
	for _, p := range s.config.Ports {
		addresses = append(addresses, ":"+strconv.Itoa(p.Listener)) // IPv4 and IPv6
	}
	for i, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("port of the sidecar: %w", err)
		}
		s.listeners = append(s.listeners, l)
		if i >= 2 {
			s.proxies = append(s.proxies, proxy.New(l, proxy.Options{
				AppPort:  s.config.Ports[i-2].App,
				Limits:   s.config.Limits,
				Engine:   s.engine,
				Clock:    s.clock,
				Observer: s.admin,
			}))
		}
	}
	return nil
}

// turn looks after what is lent and who waits, until the context ends.
func (s *sidecar) turn(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.engine.Called():
		}
		now := s.clock()
		timer.Reset(max(s.engine.Turn(now).Sub(now), shortestTurn))
	}
}

// shortestTurn bounds what turns may cost.
const shortestTurn = 200 * time.Microsecond

// drain makes clients go elsewhere while everything is still served.
func (s *sidecar) drain() {
	s.drainOnce.Do(func() {
		s.log.Info("Draining")
		s.draining.Store(true)
		s.quota.Drain()
		s.engine.Drain()
		for _, p := range s.proxies {
			p.Drain()
		}
	})
}

// asked is when a client came last since the drain began, on any port.
func (s *sidecar) asked() (last limiter.Time) {
	for _, p := range s.proxies {
		last = max(last, p.Asked())
	}
	return last
}

// end lets requests in flight finish, gives the quota back and closes everything. The order is the promise: the final
// report goes out only when nothing can be admitted any more.
func (s *sidecar) end() {
	s.drain()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	var ending sync.WaitGroup
	for _, p := range s.proxies {
		ending.Go(func() {
			if err := p.Shutdown(ctx); err != nil {
				s.log.Warn("Grace is over", "error", err)
			}
		})
	}
	ending.Wait()
	s.engine.Stop(s.clock())
	bye, cancelBye := context.WithTimeout(context.Background(), farewell)
	defer cancelBye()
	s.quota.Finish(bye)
	_ = s.public.Close()
	_ = s.local.Close()
	s.log.Info("Stopped serving")
}

// enforcer passes on what the operator says: to the engine, with the time, and that the pod leaves.
type enforcer struct {
	*admission.Engine
	clock func() limiter.Time
	leave func()
}

func (e enforcer) Leave() { e.leave() }

func (e enforcer) Adopt(epoch uint64, sent int64) { e.Engine.Adopt(epoch, sent, e.clock()) }

func (e enforcer) Report() *quotav1.Report { return e.Engine.Report(e.clock()) }

func (e enforcer) Final() *quotav1.Report { return e.Engine.Final(e.clock()) }

func (e enforcer) Grant(g *quotav1.Grant) error { return e.Engine.Grant(g, e.clock()) }

func (e enforcer) Apply(snapshot *quotav1.Snapshot, shares []*quotav1.Share) error {
	return e.Engine.Apply(snapshot, shares, e.clock())
}
