// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a Client. All fields but Backoff are required.
type Options struct {
	// Operator is host:port of the operator's service; any replica may answer.
	Operator    string
	Credentials Credentials
	Identity    Identity
	Enforcer    Enforcer
	Log         *slog.Logger
	// Backoff is DefaultBackoff when zero.
	Backoff Backoff
}

// Client keeps a stream to the leading operator for as long as the process lives.
type Client struct {
	// Immutable after New.
	options Options

	// Used by the goroutine of Run only.
	machine *machine

	// Safe for all goroutines.
	status   atomic.Pointer[Status]
	draining chan struct{} // closed by Drain
	finish   chan struct{} // closed by Finish
	done     chan struct{} // closed at the end of Run
	drain    sync.Once
	finishes sync.Once
}

// Status is what people want to know about the stream.
type Status struct {
	Connected bool      `json:"connected"`           // a leader has welcomed this process and the stream is alive
	Since     time.Time `json:"since"`               // since when that is so, or is not
	Heard     time.Time `json:"heard,omitzero"`      // when a leader last said anything
	Epoch     uint64    `json:"epoch"`               // highest adopted
	Leader    string    `json:"leader,omitempty"`    // address of the leader, or of the service when that was it
	LastError string    `json:"lastError,omitempty"` // why the last stream or attempt ended
}

// New returns a client that does nothing before Run.
func New(options Options) *Client {
	if options.Backoff == (Backoff{}) {
		options.Backoff = DefaultBackoff
	}
	c := &Client{
		options:  options,
		machine:  newMachine(options.Identity, options.Enforcer),
		draining: make(chan struct{}),
		finish:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	c.status.Store(&Status{Since: time.Now()})
	return c
}

// Status returns the present state of the stream.
func (c *Client) Status() Status { return *c.status.Load() }

// Drain tells the operator that the process drains, now and on every later stream.
func (c *Client) Drain() { c.drain.Do(func() { close(c.draining) }) }

// Finish sends the final report and waits until the operator has taken it or the context ends; then Run returns. The
// caller promises that nothing is admitted any more.
func (c *Client) Finish(ctx context.Context) {
	c.finishes.Do(func() { close(c.finish) })
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

// maxHops bounds how often replicas may name each other as the leader before the client pauses.
const maxHops = 3

// Run connects and reconnects until the context ends or the final report is out.
func (c *Client) Run(ctx context.Context) {
	defer close(c.done)
	failures, hops := 0, 0
	address := c.options.Operator
	for {
		err := c.session(ctx, address)
		if c.machine.welcomed {
			failures, hops = 0, 0
		}
		c.ended(address, err)
		if ctx.Err() != nil || c.finishing() {
			return
		}
		var r *redirect
		if errors.As(err, &r) && r.leader != "" && hops < maxHops {
			hops++
			address = r.leader
			continue
		}
		hops = 0
		failures++
		address = c.options.Operator
		if !c.pause(ctx, c.options.Backoff.delay(failures, random)) {
			return
		}
	}
}

func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.finish:
		return false
	case <-ctx.Done():
		return false
	}
}

func (c *Client) finishing() bool {
	select {
	case <-c.finish:
		return true
	default:
		return false
	}
}

// ended notes why a session ended. The same reason is logged once, however often it comes.
func (c *Client) ended(address string, err error) {
	before := c.Status()
	now := Status{Since: before.Since, Heard: before.Heard, Epoch: c.machine.epoch}
	if before.Connected {
		now.Since = time.Now()
	}
	if err != nil {
		now.LastError = err.Error()
	}
	c.status.Store(&now)
	var r *redirect
	switch {
	case err == nil, c.finishing(), errors.As(err, &r) && r.leader != "":
	case before.Connected:
		c.options.Log.Warn("Lost the operator, shares stay in force", "operator", address, "error", err)
	case before.LastError != now.LastError:
		c.options.Log.Warn("Operator not reached, trying again", "operator", address, "error", err)
	}
}

// welcomed notes that the leader has spoken.
func (c *Client) welcomed(address string) {
	before := c.Status()
	now := Status{Connected: true, Since: before.Since, Heard: time.Now(), Epoch: c.machine.epoch, Leader: address}
	if !before.Connected {
		now.Since = now.Heard
	}
	c.status.Store(&now)
	if !before.Connected {
		c.options.Log.Info("Connected to the operator", "operator", address, "epoch", c.machine.epoch)
	}
}
