// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of one run. Loads are small on purpose: what is tested is a sum, not a throughput.
const (
	MostPerSecond = 2000
	Longest       = 5 * time.Minute
)

// Count is how many requests had which end so far.
type Count struct{ Offered, Admitted, Denied, Failed int64 }

// Run is a load that is being sent.
type Run struct {
	cancel  context.CancelFunc
	senders sync.WaitGroup

	offered, admitted, denied, failed atomic.Int64

	mu      sync.Mutex
	answers []Answer
}

// Start begins to send the requests of all clients to target, http://IP:port of a private address, until Stop is called,
// ctx is done or the run has lasted for Longest.
func Start(ctx context.Context, target string, clients ...Client) (*Run, error) {
	if err := private(target); err != nil {
		return nil, err
	}
	total := 0.0
	for _, c := range clients {
		total += c.Rate
	}
	if total > MostPerSecond {
		return nil, fmt.Errorf("load: %.0f requests per second are more than %d", total, MostPerSecond)
	}
	ctx, cancel := context.WithTimeout(ctx, Longest)
	r := &Run{cancel: cancel}
	for i, c := range clients {
		// Clients begin at different times, so that they do not send in step.
		phase := time.Duration(float64(time.Second) / c.Rate * float64(i) / float64(len(clients)))
		r.senders.Go(func() { r.drive(ctx, newSender(c, target), phase) })
	}
	return r, nil
}

// private refuses to send load to anything but an address of a private network.
func private(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsPrivate() && !ip.IsLoopback() {
		return fmt.Errorf("load: %s is not an address of a private network", target)
	}
	return nil
}

// drive paces one client. A client that cannot keep up skips what it has missed.
func (r *Run) drive(ctx context.Context, s *sender, phase time.Duration) {
	defer s.http.CloseIdleConnections()
	every := time.Duration(float64(time.Second) / s.Rate)
	next := time.Now().Add(phase)
	timer := time.NewTimer(phase)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.note(s.send(context.WithoutCancel(ctx)))
		now := time.Now()
		if next = next.Add(every); next.Before(now.Add(-time.Second)) {
			next = now
		}
		timer.Reset(next.Sub(now))
	}
}

func (r *Run) note(a Answer) {
	r.offered.Add(1)
	switch {
	case a.Admitted():
		r.admitted.Add(1)
	case a.Denied():
		r.denied.Add(1)
	default:
		r.failed.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, a)
}

// Count returns the counts so far.
func (r *Run) Count() Count {
	return Count{r.offered.Load(), r.admitted.Load(), r.denied.Load(), r.failed.Load()}
}

// Answers returns what has been answered so far, roughly in the order of the answers.
func (r *Run) Answers() []Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Answer(nil), r.answers...)
}

// Stop ends the load, waits for requests in flight, and returns all answers.
func (r *Run) Stop() []Answer {
	r.cancel()
	r.senders.Wait()
	return r.Answers()
}
