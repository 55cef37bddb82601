// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ratelimitpolicy

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/target"
)

// attempts is how often a restart is tried that somebody takes back each time.
const attempts = 2

// memory is what the controller remembers of workloads. A new leader starts without it: at worst it tries again what its
// predecessor has given up, or takes the sidecar's word for a rollout that was edited just before the policy went. The
// zero value is ready. Safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	applied map[types.UID]applied
	told    map[string]string
	choices map[target.Workload]v1alpha1.RolloutMode
	orphans map[target.Workload]time.Time
}

// applied is how often a workload was restarted for one injection.
type applied struct {
	hash  string
	times int
}

// tried returns how often a workload was restarted for an injection.
func (m *memory) tried(uid types.UID, hash string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.applied[uid]; a.hash == hash {
		return a.times
	}
	return 0
}

// try notes that a workload is restarted for an injection.
func (m *memory) try(uid types.UID, hash string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied == nil {
		m.applied = map[types.UID]applied{}
	}
	a := m.applied[uid]
	if a.hash != hash {
		a = applied{hash: hash}
	}
	a.times++
	m.applied[uid] = a
}

// news reports whether something is said of a subject for the first time, or anew after something else.
func (m *memory) news(subject, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = map[string]string{}
	}
	if m.told[subject] == text {
		return false
	}
	m.told[subject] = text
	return true
}

// choose notes who restarts a workload, as its policies say while they are there.
func (m *memory) choose(w target.Workload, mode v1alpha1.RolloutMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.choices == nil {
		m.choices = map[target.Workload]v1alpha1.RolloutMode{}
	}
	m.choices[w] = mode
	delete(m.orphans, w)
}

// choice is what the last policy of a workload said, if this leader has seen it.
func (m *memory) choice(w target.Workload) v1alpha1.RolloutMode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.choices[w]
}

// orphaned returns since when a workload is known to have no policy.
func (m *memory) orphaned(w target.Workload, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.orphans == nil {
		m.orphans = map[target.Workload]time.Time{}
	}
	if _, ok := m.orphans[w]; !ok {
		m.orphans[w] = now
	}
	return m.orphans[w]
}

// forget drops what is known of a workload's policies.
func (m *memory) forget(w target.Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.choices, w)
	delete(m.orphans, w)
}
