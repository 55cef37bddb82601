// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package escrow

// Sleeper is the process's side of one limit: the epoch it follows, its share, and the promise to leave the sleeping part
// of it to the mint. While the process is isolated it earns all of its share; a Holder for each account spends it.
//
// Times are nanoseconds of the process's monotonic clock. A Sleeper and its holders are not safe for concurrent use.
type Sleeper struct {
	sleep int64 // D

	epoch    uint64
	limit    Limit
	units    uint64
	awake    bool
	whole    int64  // what the share may hold while isolated, in micro-tokens
	tenth    int64  // what it may hold while it sleeps, where a part is awake
	seq      uint64 // newest order in force
	acked    uint64 // newest that no decision can precede
	heard    int64  // newest word of this epoch's leader, by its clock
	came     int64  // when it came
	answered int64  // when the newest beat that the leader has heard was sent
	draining bool

	stay    bool  // the leader would have shares earned in place
	stand   int64 // what each account may keep at hand without demand, in tokens
	busyNow bool  // what the newest beat said
	staying bool  // the process has use for all of its share, and makes no promise
	beat    int64 // when the newest beat was sent
	urgent  bool
	ordered bool
	wakes   int64 // D after the word came that the newest promise names

	now      int64
	isolated bool
	earned   uint64 // micro-tokens; wraps around, and differences hold
	rate     accrual

	born    int64     // newest Holder.born
	holders []*Holder // the first is the account that nothing has been taken from
}

// NewSleeper returns the side of a process that has no share and follows nobody. sleep is D, the same as the leader's.
func NewSleeper(sleep, now int64) *Sleeper {
	s := &Sleeper{sleep: sleep, now: now, isolated: true, beat: now - sleep}
	s.holders = []*Holder{{s: s}}
	return s
}

// Welcome adopts an epoch, from then on refusing everything older. It isolates nothing: shares and loans go on. It
// reports whether the process has to say Hello, with a Claim of every account in which it has something.
func (s *Sleeper) Welcome(w Welcome, now int64) bool {
	if w.Epoch < s.epoch {
		return false
	}
	s.advance(now)
	if w.Epoch > s.epoch {
		s.epoch, s.seq, s.acked, s.heard = w.Epoch, 0, 0, 0
		s.answered = now
	}
	s.listen(w.Sent, now)
	s.urgent = true
	return true
}

// listen notes when the newest word of the leader came: a promise names that word, and holds for D from when it came.
func (s *Sleeper) listen(sent, now int64) {
	if sent > s.heard {
		s.heard, s.came = sent, now
	}
}

// Drain says that the process serves on and wants no larger share.
func (s *Sleeper) Drain() { s.draining, s.urgent = true, true }

// Epoch returns the adopted epoch.
func (s *Sleeper) Epoch() uint64 { return s.epoch }

// Isolated reports whether the process earns all of its share.
func (s *Sleeper) Isolated(now int64) bool {
	s.advance(now)
	return s.isolated
}

// Units returns the share in force.
func (s *Sleeper) Units() uint64 { return s.units }

// Order takes in the leader's word on the share. The newest replaces older ones, whatever order they come in.
func (s *Sleeper) Order(o Order, now int64) {
	if o.Epoch != s.epoch {
		return
	}
	s.advance(now)
	if o.Sent >= s.heard {
		s.stay, s.stand = o.Stay, o.Stand
	}
	s.listen(o.Sent, now)
	if o.Heard > s.answered {
		s.answered = o.Heard
		s.urgent = s.urgent || s.isolated && !s.staying
	}
	if o.Seq <= s.seq {
		return
	}
	s.settle()
	if o.Limit != s.limit || o.Units != s.units {
		s.rate.restart()
	}
	s.seq, s.limit, s.units, s.awake = o.Seq, o.Limit, o.Units, o.Awake
	s.whole, s.tenth = o.Limit.isolatedCap(o.Units), o.Limit.awakeCap(o.Units)
	s.settle()
	s.urgent, s.ordered = true, true
}

// Next returns when a Beat is due if nothing else happens.
func (s *Sleeper) Next(now int64) int64 {
	if s.staying && (!s.stay || !s.busy(now, false)) {
		s.staying, s.urgent = false, true // others may have use for the share
	}
	switch {
	case s.urgent:
		return s.now
	case s.staying && s.isolated:
		return s.beat + s.sleep
	}
	return s.beat + s.sleep/3
}

// busy reports whether the process has use for all of its share, so that it earns it in place and nobody has to lend it
// anything: where half as much again is asked for. It goes on for as long as most of it is asked for, and looks closer at
// each beat. A share that holds few tokens overflows in every lull, and where there are keys, one that is of use for one of
// them is not for another: those are better lent.
func (s *Sleeper) busy(now int64, closely bool) bool {
	if s.draining || s.whole < ample || s.limit.Keyed || len(s.holders) != 2 {
		return false
	}
	h := s.holders[1]
	d := &h.demand
	d.fade(now)
	if s.staying && s.isolated {
		s.advance(now)
		if h.settle(); h.share+min(h.out.share, h.purse.Left()*Micro) > min(s.whole-Micro, plenty) {
			return false // it overflows, or soon will
		}
	}
	var a accrual
	own := a.add(s.limit, memory, s.units*1000) // what the share earns in the time for which demand is remembered
	switch {
	case d.over(now):
		return false
	case !s.busyNow:
		return 2*d.micro >= 3*own
	case closely:
		return 5*d.micro >= 4*own
	}
	return 10*d.micro >= 6*own
}

const (
	// ample is what a share has to hold to be earned in place: lulls of some requests cost nothing then.
	ample = 4 * Micro
	// plenty is what a share that is asked for more than it earns hardly ever holds.
	plenty = 12 * Micro
)

// Alone reports whether nobody lends the process anything: it lives on its share, and not by choice.
func (s *Sleeper) Alone(now int64) bool {
	s.advance(now)
	return s.isolated && (!s.staying || now-s.answered > 3*s.sleep)
}

// Beat returns what is to be sent now, if anything is: a change at once, and a heartbeat each D/3, or each D while the process
// has use for all of its share and promises nothing. A promise is made
// only while the leader has answered a beat of the last D/2, so that no deaf side keeps the other waiting.
func (s *Sleeper) Beat(now int64) (Beat, bool) {
	if s.epoch == 0 || now <= s.beat || now < s.Next(now) {
		return Beat{}, false
	}
	return s.report(now), true
}

// Hello returns the first report to a leader, due or not.
func (s *Sleeper) Hello(now int64) Beat { return s.report(max(now, s.beat+1)) }

func (s *Sleeper) report(now int64) Beat {
	s.advance(now)
	s.urgent = false
	s.beat = now
	if s.acked < s.seq && s.settled() {
		s.acked = s.seq
	}
	s.busyNow = s.busy(now, true)
	s.staying = s.stay && s.busyNow
	promise := now-s.answered <= s.sleep/2 && !s.staying
	if promise {
		if s.isolated {
			s.settle()
			s.isolated = false
			s.holders[0].share = min(s.holders[0].share, s.room()) // an account that is begun from now on has no more
		}
		s.wakes = s.came + s.sleep
	}
	return Beat{
		Epoch: s.epoch, Sent: now, Heard: s.heard, Promise: promise,
		Acked: s.acked, Units: s.units, Awake: s.awake, Draining: s.draining, Busy: s.busyNow, Kept: s.kept(),
	}
}

// kept is the most that an account has of the share, in micro-tokens, set apart or not.
func (s *Sleeper) kept() int64 {
	most := s.room()
	for _, h := range s.holders {
		if !h.bare {
			h.settle()
			most = max(most, h.share+h.reservedShare)
		}
	}
	return most
}

// advance earns up to now. Waking adds nothing: from then on the whole share earns, and not before.
func (s *Sleeper) advance(now int64) {
	if now <= s.now {
		return
	}
	if !s.isolated && now > s.wakes {
		s.accrue(s.wakes)
		s.settle()
		s.isolated = true
		s.rate.faster()
	}
	s.accrue(now)
}

func (s *Sleeper) accrue(to int64) {
	parts := uint64(0)
	switch {
	case s.units == 0 || to <= s.now:
	case s.isolated:
		parts = s.units * 1000
	case s.awake:
		parts = s.units * awakePermille
	}
	if parts > 0 {
		s.earned += uint64(s.rate.add(s.limit, to-s.now, parts))
	}
	s.now = max(s.now, to)
}

// room is the most that the share of one account may hold now, in micro-tokens.
func (s *Sleeper) room() int64 {
	if s.isolated {
		return s.whole
	}
	if s.awake {
		return s.tenth
	}
	return 0
}

// Share is what every account of the limit earns by itself now: parts of the limit's rate, out of Whole * 1000, and burst
// micro-tokens at most.
func (s *Sleeper) Share(now int64) (parts uint64, burst int64) {
	s.advance(now)
	switch {
	case s.isolated:
		return s.units * 1000, s.whole
	case s.awake:
		return s.units * awakePermille, s.tenth
	}
	return 0, 0
}

// Limit returns the numbers in force.
func (s *Sleeper) Limit() Limit { return s.limit }

// Ordered reports whether a leader has ever said what the share is, be it none.
func (s *Sleeper) Ordered() bool { return s.ordered }

// Wakes returns when the process wakes if it makes no further promise.
func (s *Sleeper) Wakes() (int64, bool) { return s.wakes, !s.isolated }

// settle brings every account up to this moment, before the numbers change or because they have.
func (s *Sleeper) settle() {
	for _, h := range s.holders {
		h.settle()
	}
}

// settled reports whether nothing that is reserved rests on older numbers.
func (s *Sleeper) settled() bool {
	for _, h := range s.holders {
		if h.reservedShare > s.whole {
			return false
		}
	}
	return true
}
