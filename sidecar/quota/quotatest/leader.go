// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quotatest

import (
	"errors"
	"io"
	"sync"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Leader is a Handler with a memory: it welcomes, assigns what it is told, answers heartbeats and keeps what sidecars say.
type Leader struct {
	epoch     uint64
	heartbeat uint32

	mu         sync.Mutex
	assignment *quotav1.Assignment // without epoch and seq
	leaving    bool
	changed    chan struct{} // closed and replaced when assignment changes
	received   []*quotav1.SidecarMessage
}

// NewLeader returns a leader of an epoch that has nothing to assign yet.
func NewLeader(epoch uint64, heartbeatMilliseconds uint32) *Leader {
	return &Leader{epoch: epoch, heartbeat: heartbeatMilliseconds, changed: make(chan struct{})}
}

// Assign has every stream get a snapshot and shares.
func (l *Leader) Assign(snapshot *quotav1.Snapshot, shares ...*quotav1.Share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.assignment = &quotav1.Assignment{Snapshot: snapshot, Shares: shares}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Leave has every stream hear that its pod has been asked to end, beside what it was assigned last.
func (l *Leader) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
	close(l.changed)
	l.changed = make(chan struct{})
}

// Received are all messages of all streams so far.
func (l *Leader) Received() []*quotav1.SidecarMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*quotav1.SidecarMessage(nil), l.received...)
}

// Acked reports whether a sidecar has put a snapshot of this version in force.
func (l *Leader) Acked(version string) bool {
	for _, m := range l.Received() {
		if a := m.GetAck(); a.GetSnapshotVersion() == version && a != nil {
			return true
		}
	}
	return false
}

// Drained returns the final reports so far.
func (l *Leader) Drained() []*quotav1.Drained {
	var out []*quotav1.Drained
	for _, m := range l.Received() {
		if d := m.GetDrained(); d != nil {
			out = append(out, d)
		}
	}
	return out
}

// Handle is the Handler.
func (l *Leader) Handle(s Stream) error {
	hello, err := s.Recv()
	if err != nil {
		return err
	}
	l.note(hello)
	if err := s.Welcome(l.epoch, l.heartbeat); err != nil {
		return err
	}
	nonces, ended := make(chan uint64, 16), make(chan error, 1)
	go func() { ended <- l.read(s, nonces) }()
	for seq := uint64(0); ; {
		l.mu.Lock()
		assignment, leaving, changed := l.assignment, l.leaving, l.changed
		l.mu.Unlock()
		if assignment != nil {
			seq++
			if err := s.Assign(&quotav1.Assignment{Epoch: l.epoch, Seq: seq, Snapshot: assignment.Snapshot, Shares: assignment.Shares, Leaving: leaving}); err != nil {
				return err
			}
		}
		for wait := true; wait; {
			select {
			case <-changed:
				wait = false
			case nonce := <-nonces:
				if err := s.Acknowledge(nonce); err != nil {
					return err
				}
			case err := <-ended:
				return err
			}
		}
	}
}

func (l *Leader) read(s Stream, nonces chan<- uint64) error {
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.note(m)
		if u := m.GetUsage(); u != nil {
			select {
			case nonces <- u.GetNonce():
			case <-s.Context().Done():
				return s.Context().Err()
			}
		}
	}
}

func (l *Leader) note(m *quotav1.SidecarMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received = append(l.received, m)
}
