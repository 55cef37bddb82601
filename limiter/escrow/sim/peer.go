// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

// Peer is another way to share one limit, modelled with assumptions that are kind to it. It runs in the same world, under
// the same demand and the same oracle, in place of a leader and holders.
type Peer interface {
	Name() string
	// admit decides a request of cost 1 on a pod, now.
	admit(w *World, p *Pod) bool
}

// bucket is a token bucket of floating point, as peers' are.
type bucket struct {
	tokens float64
	at     int64
}

func (b *bucket) earn(rate, burst float64, now int64) {
	b.tokens = min(burst, b.tokens+rate*float64(now-b.at)/1e9)
	b.at = now
}

func (b *bucket) take() bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// EvenSplit gives each of N pods R/N and B/N, full at the start, as soon as it knows N: 1.5 s after it has changed. So do
// Envoy's local_cluster_rate_limit and anything that divides by the number of endpoints.
func EvenSplit() Peer { return &evenSplit{buckets: map[*Pod]*bucket{}} }

type evenSplit struct {
	buckets map[*Pod]*bucket
	counts  []count
}

type count struct {
	at int64
	n  int
}

func (*evenSplit) Name() string { return "even split, 1.5 s behind" }

func (e *evenSplit) admit(w *World, p *Pod) bool {
	now, n := w.now, len(w.Live())
	if len(e.counts) == 0 || e.counts[len(e.counts)-1].n != n {
		e.counts = append(e.counts, count{now, n})
	}
	known := e.counts[0].n
	for _, c := range e.counts {
		if c.at <= now-1500*millisecond {
			known = c.n
		}
	}
	rate, burst := w.rate()/float64(known), float64(w.limit.Burst)/float64(known)
	b := e.buckets[p]
	if b == nil {
		b = &bucket{tokens: burst, at: now}
		e.buckets[p] = b
	}
	b.earn(rate, burst, now)
	return b.take()
}

// Leases is Doorman's proportional share with leases that are refreshed each second (16 s by its default): what nobody has is
// granted by what was asked for in the last second.
func Leases() Peer { return &leases{pods: map[*Pod]*lease{}} }

type leases struct {
	pods map[*Pod]*lease
}

type lease struct {
	bucket
	rate   float64
	asked  int64 // since refreshed
	renews int64
}

func (*leases) Name() string { return "leases of 1 s" }

func (l *leases) admit(w *World, p *Pod) bool {
	s := l.pods[p]
	if s == nil {
		s = &lease{bucket: bucket{at: w.now}, renews: w.now + w.rand.Int64N(1000*millisecond)}
		l.pods[p] = s
	}
	s.asked++
	if w.now >= s.renews {
		l.renew(w, s)
	}
	// A bucket of the part of the burst that the lease is of the rate.
	s.earn(s.rate, max(1, float64(w.limit.Burst)*s.rate/w.rate()), w.now)
	return s.take()
}

func (l *leases) renew(w *World, s *lease) {
	has, wants := 0.0, 0.0
	for p, x := range l.pods {
		if !p.alive || w.now-x.renews > 2000*millisecond {
			x.rate = 0 // expired
		}
		has += x.rate
		wants += float64(max(x.asked, 0))
	}
	share := w.rate() * float64(s.asked) / max(wants, 1)
	s.rate = max(0, min(share, w.rate()-has+s.rate))
	s.asked, s.renews = 0, w.now+1000*millisecond
}

// Optimistic admits as long as the last answer of a central bucket was that there is something left, and reports each 100 ms
// what it has admitted. The bucket goes into debt.
func Optimistic() Peer { return &optimistic{pods: map[*Pod]*batch{}} }

type optimistic struct {
	central bucket
	begun   bool
	pods    map[*Pod]*batch
}

type batch struct {
	admitted int64
	open     bool
	reports  int64
}

func (*optimistic) Name() string { return "optimistic, batches of 100 ms" }

func (o *optimistic) admit(w *World, p *Pod) bool {
	if !o.begun {
		o.begun, o.central = true, bucket{tokens: float64(w.limit.Burst), at: w.now}
	}
	b := o.pods[p]
	if b == nil {
		b = &batch{open: true, reports: w.now + w.rand.Int64N(100*millisecond)}
		o.pods[p] = b
	}
	if w.now >= b.reports {
		o.central.earn(w.rate(), float64(w.limit.Burst), w.now)
		o.central.tokens -= float64(b.admitted)
		b.admitted, b.open, b.reports = 0, o.central.tokens > 0, w.now+100*millisecond
	}
	if b.open {
		b.admitted++
	}
	return b.open
}

// rate is that of the limit, per second.
func (w *World) rate() float64 { return float64(w.limit.Requests) * 1e9 / float64(w.limit.Period) }
