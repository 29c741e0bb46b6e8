package clock

import (
	"slices"
	"time"
)

// Heartbeats. A session that owns nodes needs three things, often and one soon after the other.
// lease.go says why.
//
//   - Frames that are answered: pings, which the server we are connected to answers alone.
//   - A request through the leader: a sync, which costs no disk write.
//   - A write that a quorum agrees to. docs/clock.md says why the writes of other clients do not do instead.
//
// A session that owns nothing needs one request through the leader now and then, and a ping in the middle
// between two of these. A ping proves something together with a later sync only if more than half a tick
// lies between the two. If the tick is shorter than a third of the session timeout, the next sync is late enough.
// Otherwise it is the one after it, and the syncs come more often.
//
// docs/measured/outages.md has the table from which the intervals were chosen.
const (
	// tickPerTimeout is how many times in a timeout the schedule is checked. A ping is due if
	// nothing was sent for that part of a timeout.
	tickPerTimeout = 20
	// roundPerTimeout is how many rounds a session that owns nodes begins in a timeout. A round
	// is a sync and then a write. A round does not wait for the one before it. If answers are
	// slow, several rounds are in flight.
	roundPerTimeout = 5
	// idlePerTimeout is how many syncs a session that owns nothing sends in a timeout, and how many
	// pings.
	idlePerTimeout = 3
	// slowPerTimeout: if an answer takes longer than this part of a timeout, a session that owns
	// nothing sends as many pings and syncs as one that owns nodes, for the next timeout.
	// Otherwise its first lock would begin with a proof that is too old.
	slowPerTimeout = 50
)

// beat is the schedule of one connection. It decides, and sends nothing.
type beat struct {
	timeout time.Duration
	round   time.Time   // when the last round began
	reach   time.Time   // the most that the last round could prove
	syncs   []int32     // the syncs of rounds that are in flight
	agree   []time.Time // when the writes of rounds are due
	pinged  bool        // a ping was sent since the last round, in the middle of the time to the next or later
}

// Aside keeps the schedule apart from what others do at round times after a greeting. It would matter which of
// two comes first, and only virtual time can tell.
const Aside = time.Millisecond

// Duty is a heartbeat that is due.
type Duty int

const (
	Ping Duty = iota
	Sync
	Agree
)

// facts is the input of the schedule.
type facts struct {
	owns     bool
	slow     bool // answers were slow within the last timeout
	lastSent time.Time
	proven   time.Time
	reach    time.Time     // the most that a round that begins now can prove
	half     time.Duration // h in lease.go
}

// Needed returns how long a lease (timeout − margin) has to be, so that heartbeats keep a session that
// owns nodes alive on healthy servers. half is half a tick.
//
// A session that holds: just before the write of a round is answered, the clock counts from the frame that
// the round before it has proven. That frame is up to h and two pings older than the sync of that round,
// because a ping can be late by one look at the schedule. The next sync goes a round later, and its write
// a gap after that. A round that finds the session proven well enough waits for one more look.
//
// A session that was idle: its first node is created just before the next sync, or within the gap after
// it. So the latest sync that counts is a third of the timeout old, and the ping that counts with it half
// of that time older. The next sync goes one look later.
//
// The rest is for the answers to a sync and to the write after it: if they take longer, they count as slow.
func Needed(timeout, half time.Duration) time.Duration {
	round, look := timeout/roundPerTimeout, timeout/tickPerTimeout
	holding := slowHalf(half) + gap + round + max(2*look, gap+look)
	idle := timeout*3/(2*idlePerTimeout) + gap + look
	return max(holding, idle) + 2*timeout/slowPerTimeout
}

// Margin returns what to subtract from a granted timeout. configured is 0 for the default. If the
// heartbeats need some of the configured margin, it is shorter, but not shorter than the default. ok is
// false if the heartbeats need more than that: a session that owns a node would be lost, although the
// servers are healthy.
func Margin(configured, timeout, half time.Duration) (margin time.Duration, ok bool) {
	least := standardMargin(timeout)
	if configured == 0 {
		configured = least
	}
	room := timeout - Needed(timeout, half)
	return min(configured, max(room, least)), room >= min(configured, least)
}

func standardMargin(timeout time.Duration) time.Duration {
	return timeout / 10
}

// begin is called with the greeting, and reports whether a write is due at once. On a new
// connection of a session that owns nodes, that write proves that the leader took the handshake.
//
// If the session owns nothing, its first sync comes early, since the greeting may have come late.
func (b *beat) begin(now time.Time, timeout time.Duration, owns bool) bool {
	b.timeout = timeout
	b.round, b.reach = now.Add(Aside), now
	if !owns {
		b.round, b.pinged = b.round.Add(-b.idleEvery()/2), true
	}
	return owns
}

// idleEvery returns how long after the last round an idle session begins the next one. In the middle of that
// time it pings.
//
// The sync comes early if the last round could prove less than one that comes after a ping in the middle of the
// longest time. That happens after a short time with nodes, which moves the rounds, and always if half a tick is longer
// than the time from that ping to the sync.
func (b *beat) idleEvery() time.Duration {
	longest := b.timeout / idlePerTimeout
	provesLess := b.reach.Add(longest + longest/2).Sub(b.round)
	return min(max(provesLess, b.timeout/roundPerTimeout), longest)
}

// due returns the heartbeats that are due now.
func (b *beat) due(now time.Time, f facts) []Duty {
	var out []Duty
	writes := len(b.agree)
	b.agree = slices.DeleteFunc(b.agree, func(at time.Time) bool { return !at.After(now) })
	if f.owns && writes > len(b.agree) {
		out = append(out, Agree)
	}
	if b.roundDue(now, f) {
		b.round, b.reach, b.pinged = now, f.reach, false
		out = append(out, Sync)
	}
	if len(out) == 0 && b.pingDue(now, f) {
		b.pinged = now.Sub(b.round) >= b.idleEvery()/2
		out = append(out, Ping)
	}
	return out
}

// pingDue reports whether a ping is due, if nothing else is.
func (b *beat) pingDue(now time.Time, f facts) bool {
	if f.owns || f.slow {
		return now.Sub(f.lastSent) >= b.timeout/tickPerTimeout
	}
	return !b.pinged && now.Sub(b.round) >= b.idleEvery()/2
}

// roundDue reports whether a round is due. None is due while the requests of the user prove as
// much.
//
// A round is due early if several answers, held up by a slow request, have come together. The
// last round was sent too soon to count them.
func (b *beat) roundDue(now time.Time, f facts) bool {
	since, every := now.Sub(b.round), b.timeout/roundPerTimeout
	caughtUp := f.reach.Sub(b.reach) >= since+every/2
	switch {
	case f.owns:
		return (since >= every || caughtUp) && now.Sub(f.proven) >= f.half+gap+every
	case f.slow:
		return since >= every
	}
	return since >= b.idleEvery()
}

// answered takes the answer to a request. byLeader says whether the leader gave the answer. If
// the answer is the leader's to the sync of a round, the write of that round is due after the
// gap, and answered returns true.
func (b *beat) answered(xid int32, byLeader bool, now time.Time) bool {
	i := slices.Index(b.syncs, xid)
	if i < 0 {
		return false
	}
	b.syncs = slices.Delete(b.syncs, i, i+1)
	if byLeader {
		b.agree = append(b.agree, now.Add(gap))
	}
	return byLeader
}

// next returns when to check the schedule again.
func (b *beat) next(now time.Time) time.Time {
	at := now.Add(b.timeout / tickPerTimeout)
	for _, every := range []time.Duration{
		b.timeout / roundPerTimeout, b.idleEvery(), b.idleEvery() / 2,
	} {
		if r := b.round.Add(every); r.After(now) && r.Before(at) {
			at = r // so that rounds and pings keep their intervals
		}
	}
	for _, a := range b.agree {
		if a.Before(at) {
			at = a
		}
	}
	return at
}
