// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Enforcer is what assignments are applied to.
type Enforcer interface {
	// Apply puts a snapshot and the shares of its limits in force, or changes nothing and returns an error. When it has
	// returned, no decision can use older numbers.
	Apply(snapshot *quotav1.Snapshot, shares []*quotav1.Share) error
	// Holdings are the shares in force.
	Holdings() []*quotav1.Holding
	// SnapshotVersion is the version of the snapshot in force, empty when there is none.
	SnapshotVersion() string
	// Usage are the counters of this process.
	Usage() []*quotav1.LimitUsage
	// Leave is told, once or more often, that the pod has been asked to end. It returns at once.
	Leave()
	Borrower
}

// Borrower is the side of this process in limits whose tokens are lent.
type Borrower interface {
	// Adopt follows a leader, welcomed at a time of its clock; the next Report says hello. Lost ends that.
	Adopt(epoch uint64, sent int64)
	Lost()
	// Speak tells that Report has something to say, which must be sent; nil for nothing.
	Speak() <-chan struct{}
	Report() *quotav1.Report
	// Grant takes in what the leader lends.
	Grant(*quotav1.Grant) error
	// Final is the last report.
	Final() *quotav1.Report
}

// Identity says who this process is.
type Identity struct {
	Incarnation string
	StartedAt   time.Time
	Version     string
}

// Errors that end a stream.
var (
	errStaleEpoch = errors.New("the operator's epoch is older than the one adopted")
	errSilent     = errors.New("the operator does not answer")
	errProtocol   = errors.New("the operator broke the protocol")
)

const (
	// missedHeartbeats is how many heartbeats without an answer end a stream.
	missedHeartbeats = 3
	// helloTimeout is how long the answer to Hello may take.
	helloTimeout = 10 * time.Second

	minHeartbeat     = 10 * time.Millisecond
	defaultHeartbeat = time.Second
)

// machine holds the rules of the protocol. It does no I/O and reads no clock. One goroutine at a time may use it.
type machine struct {
	// Immutable after newMachine.
	identity Identity
	enforcer Enforcer

	// Kept across streams.
	epoch    uint64 // highest adopted
	draining bool
	nonce    uint64

	// Of the present stream; reset by connected.
	welcomed     bool
	saidDraining bool // Hello did
	heartbeat    time.Duration
	seq          uint64            // newest assignment seen
	acked        uint64            // newest assignment in force
	snapshot     *quotav1.Snapshot // newest received, in force or refused
	heard        uint64            // newest nonce that the operator answered
	beat         time.Time         // when Usage was last sent; the stream's begin before that
}

func newMachine(identity Identity, enforcer Enforcer) *machine {
	return &machine{identity: identity, enforcer: enforcer}
}

// redirect is the error that ends a stream whose other end does not lead.
type redirect struct {
	leader string // empty: nobody leads
}

func (r *redirect) Error() string { return fmt.Sprintf("redirected to leader %q", r.leader) }

// refusal is an assignment that could not be applied; the stream goes on with what was in force before.
type refusal struct{ err error }

func (r *refusal) Error() string { return "assignment refused: " + r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// connected begins a stream and returns its first message. No other stream may be alive: what it reports must not
// change behind it.
func (m *machine) connected(now time.Time) *quotav1.SidecarMessage {
	m.welcomed, m.saidDraining, m.heartbeat = false, m.draining, defaultHeartbeat
	m.seq, m.acked, m.snapshot = 0, 0, nil
	m.heard, m.beat = m.nonce, now
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Hello{Hello: &quotav1.Hello{
		Protocol:        quotav1.Protocol,
		Incarnation:     m.identity.Incarnation,
		StartedAt:       timestamppb.New(m.identity.StartedAt),
		Version:         m.identity.Version,
		Epoch:           m.epoch,
		SnapshotVersion: m.enforcer.SnapshotVersion(),
		Holdings:        m.enforcer.Holdings(),
		Draining:        m.draining,
	}}}
}

// receive takes a message of the operator and returns the answer to send, nil for none. A *refusal leaves the stream
// usable; every other error ends it.
func (m *machine) receive(message *quotav1.OperatorMessage, now time.Time) (*quotav1.SidecarMessage, error) {
	switch msg := message.GetMessage().(type) {
	case *quotav1.OperatorMessage_Redirect:
		m.epoch = max(m.epoch, msg.Redirect.GetEpoch())
		return nil, &redirect{leader: msg.Redirect.GetLeaderAddress()}
	case *quotav1.OperatorMessage_Welcome:
		return m.welcome(msg.Welcome, now)
	case *quotav1.OperatorMessage_Assignment:
		return m.assign(msg.Assignment)
	case *quotav1.OperatorMessage_Grant:
		return m.grant(msg.Grant)
	case *quotav1.OperatorMessage_HeartbeatAck:
		if nonce := msg.HeartbeatAck.GetNonce(); nonce <= m.nonce {
			m.heard = max(m.heard, nonce)
		}
		return nil, nil
	}
	// A kind of message that this version does not know is no reason to stop.
	return nil, nil
}

func (m *machine) welcome(w *quotav1.Welcome, now time.Time) (*quotav1.SidecarMessage, error) {
	if w.GetEpoch() < m.epoch {
		return nil, fmt.Errorf("%w: welcomed with %d, adopted %d", errStaleEpoch, w.GetEpoch(), m.epoch)
	}
	m.epoch = w.GetEpoch()
	m.welcomed = true
	m.beat = now
	m.enforcer.Adopt(m.epoch, w.GetSentNanoseconds())
	if ms := w.GetHeartbeatMilliseconds(); ms > 0 {
		m.heartbeat = max(minHeartbeat, time.Duration(ms)*time.Millisecond)
	}
	if m.draining && !m.saidDraining {
		return m.usage(now), nil
	}
	return nil, nil
}

func (m *machine) assign(a *quotav1.Assignment) (*quotav1.SidecarMessage, error) {
	switch {
	case !m.welcomed:
		return nil, fmt.Errorf("%w: assignment before Welcome", errProtocol)
	case a.GetEpoch() < m.epoch:
		return nil, fmt.Errorf("%w: assignment of %d, adopted %d", errStaleEpoch, a.GetEpoch(), m.epoch)
	case a.GetEpoch() > m.epoch:
		return nil, fmt.Errorf("%w: assignment of epoch %d on a stream of %d", errProtocol, a.GetEpoch(), m.epoch)
	case a.GetSeq() == m.acked && m.acked > 0:
		return m.ack(), nil // repeated: it is in force, and the answer may be what was lost
	case a.GetSeq() <= m.seq:
		return nil, nil // older than one seen: superseded
	}
	if a.GetLeaving() {
		m.enforcer.Leave()
	}
	snapshot := a.GetSnapshot()
	if snapshot == nil {
		// "Unchanged" refers to the one that this stream brought last, even if it was refused.
		if m.snapshot == nil {
			return nil, fmt.Errorf("%w: assignment %d has no snapshot to refer to", errProtocol, a.GetSeq())
		}
		snapshot = m.snapshot
	}
	m.seq, m.snapshot = a.GetSeq(), snapshot
	if err := m.enforcer.Apply(snapshot, a.GetShares()); err != nil {
		return nil, &refusal{err}
	}
	m.acked = m.seq
	return m.ack(), nil
}

// grant takes in what the leader lends. What is of an older epoch is refused further down, by what it would change.
func (m *machine) grant(g *quotav1.Grant) (*quotav1.SidecarMessage, error) {
	if !m.welcomed || g.GetEpoch() != m.epoch {
		return nil, fmt.Errorf("%w: grant of epoch %d on a stream of %d", errProtocol, g.GetEpoch(), m.epoch)
	}
	if err := m.enforcer.Grant(g); err != nil {
		return nil, &refusal{err}
	}
	return m.report(), nil
}

// report is what is to be said of limits whose tokens are lent, nil for nothing.
func (m *machine) report() *quotav1.SidecarMessage {
	if !m.welcomed {
		return nil
	}
	r := m.enforcer.Report()
	if r == nil {
		return nil
	}
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Report{Report: r}}
}

func (m *machine) ack() *quotav1.SidecarMessage {
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Ack{Ack: &quotav1.Ack{
		Epoch:           m.epoch,
		Seq:             m.acked,
		SnapshotVersion: m.enforcer.SnapshotVersion(),
	}}}
}

// tick returns what is due, nil for nothing, and when to call it again. An error ends the stream.
func (m *machine) tick(now time.Time) (*quotav1.SidecarMessage, time.Time, error) {
	if !m.welcomed {
		if !now.Before(m.beat.Add(helloTimeout)) {
			return nil, time.Time{}, fmt.Errorf("%w: no Welcome within %v", errSilent, helloTimeout)
		}
		return nil, m.beat.Add(helloTimeout), nil
	}
	if due := m.beat.Add(m.heartbeat); now.Before(due) {
		return nil, due, nil
	}
	// Counted, not timed: a process that was frozen for a while finds no fault with the operator.
	if m.nonce-m.heard >= missedHeartbeats {
		return nil, time.Time{}, fmt.Errorf("%w: %d heartbeats missed", errSilent, missedHeartbeats)
	}
	return m.usage(now), now.Add(m.heartbeat), nil
}

// drain records that the process drains and returns the message that says so; nil when the stream's Hello or a later
// heartbeat will.
func (m *machine) drain(now time.Time) *quotav1.SidecarMessage {
	m.draining = true
	if !m.welcomed {
		return nil
	}
	return m.usage(now)
}

func (m *machine) usage(now time.Time) *quotav1.SidecarMessage {
	m.nonce++
	m.beat = now
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Usage{Usage: &quotav1.Usage{
		Limits:   m.enforcer.Usage(),
		Draining: m.draining,
		Nonce:    m.nonce,
	}}}
}

// drained is the last message of the process. Nothing may be admitted after it.
func (m *machine) drained() *quotav1.SidecarMessage {
	return &quotav1.SidecarMessage{Message: &quotav1.SidecarMessage_Drained{Drained: &quotav1.Drained{
		Limits: m.enforcer.Usage(),
		Last:   m.enforcer.Final(),
	}}}
}
